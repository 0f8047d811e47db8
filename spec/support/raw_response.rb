# frozen_string_literal: true

# Where a response ends, for a client that keeps its connection.
module ResponseEnd
  HEAD_END = "\r\n\r\n"
  private_constant :HEAD_END

  module_function

  # The size of the final response at the beginning of these bytes, with the interim ones before it; nil if its end has
  # not come, or will be that of the connection.
  #
  # @param head [Boolean] whether it answers a request of the method HEAD
  def of(bytes, head: false)
    at = 0
    loop do
      start = at
      at = (bytes.index(HEAD_END, start) or return) + HEAD_END.bytesize
      status = bytes[start, 12][/\d+\z/].to_i
      next if status.between?(100, 199) && status != 101

      return end_of_body(bytes, start, at, head || [204, 304].include?(status))
    end
  end

  def end_of_body(bytes, start, body, is_bodyless)
    fields = bytes[start...body]
    return if fields.match?(/^connection: close\r$/i) || fields.start_with?("HTTP/1.1 101")
    return body if is_bodyless
    return chunks_end(bytes, body) if fields.match?(/^transfer-encoding: chunked\r$/i)

    length = fields[/^content-length: (\d+)\r$/i, 1] or return
    last = body + length.to_i
    last if bytes.bytesize >= last
  end

  def chunks_end(bytes, from)
    loop do
      size = bytes[from, 20][/\A\h+\r\n/] or return
      from += size.bytesize + size.hex + 2
      return if from > bytes.bytesize
      return from if size.hex.zero?
    end
  end
end

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
