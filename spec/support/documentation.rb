# frozen_string_literal: true

# The pages of the documentation, and the code in them.
#
# What stands behind the language of a fenced code block says how it is executed; see {Documentation::Examples}.
module Documentation
  ROOT = File.expand_path("../..", __dir__)
  # HTTP.md and HTTP-differences.md are generated and compared by specs of their own, ARCHITECTURE.md holds a drawing.
  OTHERS = %w[docs/ARCHITECTURE.md docs/HTTP.md docs/HTTP-differences.md].freeze
  private_constant :OTHERS

  module_function

  def pages
    files = Dir.glob("docs/*.md", base: ROOT).sort - OTHERS
    [Page.new("README.md", languages: %w[ruby]), *files.map { |file| Page.new(file) }]
  end

  def page(file) = Page.new(file)

  # The page in one file.
  class Page
    FENCED = /^```(?<info>[^\n`]*)\n(?<text>.*?)^```$/m

    attr_reader :file, :text

    # @param languages [Array<String>, nil] those of the blocks that are executed; nil for all
    def initialize(file, languages: nil)
      @file = file
      @text = File.read(File.join(ROOT, file))
      @languages = languages
    end

    # @raise [RuntimeError] if one is not closed, or is fenced in another way
    def blocks
      found = []
      text.scan(FENCED) do
        match = Regexp.last_match
        found << Block.new(self, match.pre_match.count("\n") + 1, match[:info].strip, match[:text])
      end
      raise "#{file}: a code block is not closed" unless text.scan(/^ *(?:```|~~~)/).size == found.size * 2

      found.select { |block| @languages.nil? || @languages.include?(block.language) }
    end

    # The rows of all tables whose head begins with this cell: the cells of each, without the Markdown's escapes.
    def rows(first_cell)
      tables.select { |head, *| head.first == first_cell }.flat_map { |_, _, *rows| rows }
    end

    # Headings, as links name them.
    def anchors
      text.scan(/^#+ (.+)$/).flatten.map { |title| title.downcase.gsub(/[^\w\- ]/, "").tr(" ", "-") }
    end

    # The targets of links to files of this repository.
    def links = text.gsub(FENCED, "").scan(/\]\(([^)\s]+)\)/).flatten.grep_v(/\Ahttps?:/)

    private

    def tables
      text.gsub(FENCED, "").scan(/(?:^\|.*\|\n?)+/).map do |table|
        table.lines.map { |line| line.strip[1..-2].split(/(?<!\\)\|/).map { |cell| cell.strip.gsub('\|', "|") } }
      end
    end
  end

  # A fenced code block.
  Block = Struct.new(:page, :line, :info, :text) do
    def place = "#{page.file}:#{line}"
    def language = info.split.first.to_s

    # The text of the last block above whose kind begins so, or another text.
    def above(kind, otherwise)
      found = page.blocks.select { |block| block.line < line && "#{block.info} ".start_with?("#{kind} ") }.last
      found ? found.text : otherwise
    end
  end
end
