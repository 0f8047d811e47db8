# frozen_string_literal: true

# A response as it came over the wire, taken apart without any lenience. Where a field is repeated, its values are all
# there.
RawResponse = Struct.new(:status, :fields, :body) do
  def self.parse(bytes)
    head, separator, body = bytes.b.partition("\r\n\r\n")
    line, *fields = head.split("\r\n", -1)
    raise "no response: #{bytes.inspect}" if separator.empty? || !line.match?(%r{\AHTTP/1\.1 \d{3} [ -~]*\z})

    new(line[9, 3].to_i, parse_fields(fields), body)
  end

  def self.parse_fields(lines)
    lines.each_with_object({}) do |line, fields|
      name, value = line.match(/\A([!#$%&'*+.^`|~\w-]+): ([^\r\n]*)\z/n)&.captures || raise("no field: #{line.inspect}")
      (fields[name.downcase] ||= []) << value
    end
  end
  private_class_method :parse_fields

  def [](name) = fields[name]&.join(", ")

  # The body as the application meant it; nil if its end is missing.
  def content = self["transfer-encoding"] == "chunked" ? dechunked : body

  # The body without its chunked coding; nil if its end is missing.
  def dechunked
    rest = body.dup
    decoded = +""
    loop do
      size = rest.slice!(/\A\h+\r\n/)&.to_i(16) or return
      break rest == "\r\n" ? decoded : nil if size.zero?

      decoded << rest.slice!(0, size)
      return unless rest.delete_prefix!("\r\n")
    end
  end
end
