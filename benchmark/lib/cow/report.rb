# frozen_string_literal: true

require_relative "result"

module Cow
  # A result as text.
  class Report
    # Kinds of mappings, as they are headed.
    KINDS = { c_heap: "= C heap", anonymous: "+ anonymous", code: "+ code", files: "+ files", stack: "+ stack" }.freeze

    # @param labels [Labels]
    def initialize(result, labels)
      @result = result
      @labels = labels
    end

    def to_s
      application = @result.application
      ["#{application.name}: #{application.title}", *summary, *details, *notes, *failures].join("\n")
    end

    private

    def summary
      return [] if @result.keys.empty?

      heads = ["all processes, in MB", "Pss", "÷ one warm process", "÷ bare forks", "private dirty"]
      heads.push("Pss of code", "÷ one warm process") if code?
      ["", *table([heads, *@result.keys.map { |key| summary_row(key) }])]
    end

    def code? = @result.keys.any? { |key| @result.spread(key, :code) }

    def summary_row(key)
      forks = @result.forks(key)
      cells = [@labels.to_s(key), amount(@result.spread(key, :pss)), ratio(@result.ratio(key, :pss)),
               ratio(forks && @result.ratio(key, :pss, to: forks)), amount(@result.spread(key, :private_dirty))]
      cells.push(amount(@result.spread(key, :code), 2), ratio(@result.ratio(key, :code))) if code?
      cells
    end

    def amount(spread, digits = 1)
      spread ? megabytes(spread.middle, digits) : "-"
    end

    # With the lowest and the highest, if the rounds differ.
    def ratio(spread)
      return "-" unless spread

      middle, low, high = spread.to_a.map { |value| format("%.2f", value) }
      low == high ? middle : "#{middle} (#{low}–#{high})"
    end

    def details
      return [] if @result.keys.empty?

      heads = ["each process, in MB", "calls", "Pss", "shared", "private dirty", *KINDS.values]
      heads.push("Pss of code", "KB compiled") if code?
      rows = @result.keys.flat_map do |key|
        sample = @result.typical(key)
        [[@labels.to_s(key), *[""] * (heads.size - 1)],
         *[sample.monitor, *sample.rows].compact.map { |row| detail_row(row) }]
      end
      ["", *table([heads, *rows])]
    end

    def detail_row(row)
      dirty = KINDS.keys.map { |kind| megabytes(row.kinds[kind].private_dirty) }
      memory = %i[pss shared private_dirty].map { |field| megabytes(row.memory.public_send(field)) }
      code = [megabytes(row.kinds[:code].pss, 2), row.code_bytes ? (row.code_bytes / 1024).to_s : "-"]
      ["  #{row.role}", row.calls.to_s, *memory, *dirty, *(code if code?)]
    end

    def megabytes(kibibytes, digits = 1) = format("%.#{digits}f", kibibytes / 1024.0)

    # The first column is text, the others are figures.
    def table(rows)
      widths = rows.transpose.map { |column| column.map(&:size).max }
      rows.map do |label, *figures|
        cells = figures.zip(widths.drop(1)).map { |cell, width| cell.rjust(width) }
        ["  #{label.ljust(widths.first)}", *cells].join("  ").rstrip
      end
    end

    def notes = @result.notes.map { |note| "  note: #{note}" }

    def failures
      @result.failures.map { |name, message| "  FAILED: #{name}: #{message.gsub("\n", "\n    ")}" }
    end
  end
end
