# frozen_string_literal: true

# An application of the usual kind: its first request is the expensive one. It fills a catalogue, compiles templates
# and builds routes, as large applications do, and every later request uses them.
class Catalogue
  RECORDS = 40_000
  TEMPLATES = 300
  SHOWN = 12

  def self.instance = @instance ||= new

  def initialize
    @records = Array.new(RECORDS) do |id|
      { id: id, name: "record number #{id}", text: "lorem ipsum #{id} " * 8, tags: ["tag#{id % 97}", "tag#{id % 89}"] }
    end
    @by_name = @records.to_h { |record| [record[:name], record] }
    @templates = Array.new(TEMPLATES) { |number| template(number) }
    @served = 0
  end

  def page
    @served += 1
    template = @templates[@served % TEMPLATES]
    Array.new(SHOWN) { |step| template.call(@by_name.fetch("record number #{((@served * 31) + step) % RECORDS}")) }.join
  end

  private

  def template(number)
    eval(<<~RUBY, binding, __FILE__, __LINE__ + 1) # rubocop:disable Security/Eval, Style/DocumentDynamicEvalDefinition
      lambda do |record|
        tags = record[:tags].map { |tag| "<i>\#{tag.capitalize}</i>" }.join(" ")
        "<article class='t#{number}' id='\#{record[:id]}'><h2>\#{record[:name]}</h2>\#{record[:text]}\#{tags}</article>\\n"
      end
    RUBY
  end
end

# Ways not to come back: in a system call, in Ruby, and (for half a minute) in native code that keeps the VM locked.
HANG = {
  "sleep" => -> { sleep },
  "spin" => -> { loop { nil } },
  "native" => -> { Integer.sqrt(1 << 80_000_000) }
}.freeze

run(lambda do |env|
  hang = env["PATH_INFO"][%r{\A/hang/(\w+)}, 1] and HANG.fetch(hang).call

  body = "#{Catalogue.instance.page}pid=#{Process.pid}\n"
  [200, { "content-type" => "text/html", "content-length" => body.bytesize.to_s }, [body]]
end)
