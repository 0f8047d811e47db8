# frozen_string_literal: true

module PitchforkRs
  # Reads files that are evaluated as Ruby from a String: what `load` would do to them on the way is done here.
  # @api private
  module SourceFile
    BYTE_ORDER_MARK = "\xEF\xBB\xBF".b.freeze
    END_MARKER = /^__END__\r?(?:\n|\z)/n
    private_constant :BYTE_ORDER_MARK, :END_MARKER

    module_function

    # The program text of a file: without byte order mark and without what follows `__END__`. It is tagged UTF-8
    # whatever the locale says, as Ruby takes its sources; an encoding comment on top overrides that when the text is
    # evaluated.
    #
    # @param path [String]
    # @return [String]
    # @raise [SystemCallError] if the file cannot be read
    def read(path)
      bytes = File.binread(path).delete_prefix(BYTE_ORDER_MARK)
      bytes = bytes[0, bytes.index(END_MARKER) || bytes.bytesize]
      bytes.force_encoding(Encoding::UTF_8)
    end
  end
end
