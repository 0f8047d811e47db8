# frozen_string_literal: true

# 1.2 million objects that stay, as the code and the caches of a large application; some 6,000 for each request, of
# which a fifth lives on for 400 requests, and so becomes old.
STAY = Array.new(400_000) { |id| { id: id, name: "name of the object number #{id}" } }
RECENT = Array.new(400)
served = 0

run(lambda do |_env|
  before = GC.count
  rows = Array.new(1_500) { |id| { id: id, name: "row #{id}", note: "n" * 100 } }
  RECENT[(served += 1) % RECENT.size] = rows.first(300)
  sum = rows.sum { |row| row[:id] + row[:note].size }
  [200, { "content-type" => "text/plain", "content-length" => "8", "x-collections" => (GC.count - before).to_s },
   ["#{sum}\n"]]
end)
