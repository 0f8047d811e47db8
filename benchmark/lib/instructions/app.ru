# frozen_string_literal: true

# A collection more or less between two counts would make a difference of 7,000 instructions for each request.
GC.disable
run(->(_env) { [200, { "content-type" => "text/plain", "content-length" => "6" }, ["hello\n"]] })
