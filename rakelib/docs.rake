# frozen_string_literal: true

namespace :docs do
  desc "Write docs/compatibility.md from spec/compatibility.yml"
  task :compatibility do
    require_relative "../spec/support/compatibility"
    Encoding.default_external = Encoding::UTF_8
    File.write(File.expand_path("../docs/compatibility.md", __dir__), Compatibility.new.to_s)
  end

  desc "Write docs/HTTP.md from the cases in spec/corpus"
  task :http do
    require_relative "../spec/support/corpus/document"
    Encoding.default_external = Encoding::UTF_8
    File.write(File.expand_path("../docs/HTTP.md", __dir__), Corpus::Document.new.to_s)
  end
end
