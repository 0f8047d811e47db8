# frozen_string_literal: true

require "json"

# The figures of the demonstration, for people and for programs.
class Report
  Row = Struct.new(:role, :pid, :memory)

  # The rows of one measurement. The monitor is counted apart: it never loads the application.
  Section = Struct.new(:title, :rows, :monitor) do
    def total
      rows.sum { |row| row.memory.pss }
    end

    def total_with_monitor
      total + (monitor ? monitor.memory.pss : 0)
    end

    def to_h
      {
        processes: [monitor, *rows].compact.map { |row| { role: row.role, pid: row.pid, **rounded(row.memory) } },
        pss_mb: total.round(1), pss_with_monitor_mb: total_with_monitor.round(1)
      }
    end

    private

    def rounded(memory)
      { pss_mb: memory.pss.round(1), private_dirty_mb: memory.private_dirty.round(1) }
    end
  end

  BAR_WIDTH = 30
  EIGHTHS = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"].freeze

  def initialize(records:, single:, without:, with:)
    @records = records
    @single = single
    @without = without
    @with = with
  end

  def to_json(*)
    JSON.pretty_generate(
      ruby: RUBY_DESCRIPTION, records: @records,
      one_warm_process: @single.to_h, without_reforking: @without.to_h, with_reforking: @with.to_h,
      ratios: {
        with_to_without: ratio(@without), with_to_one_warm_process: ratio(@single),
        with_to_without_monitor_included: ratio(@without, :total_with_monitor),
        with_to_one_warm_process_monitor_included: ratio(@single, :total_with_monitor)
      }
    )
  end

  def to_s
    [
      "", RUBY_DESCRIPTION, "#{thousands(@records)} strings in the application's cache; all figures in MB", "",
      format("%-28<role>s %8<pid>s %8<pss>s %14<dirty>s", role: "", pid: "pid", pss: "Pss", dirty: "Private_Dirty"),
      [@single, @without, @with].map { |section| section_lines(section) },
      format("%-28<label>s %8<plain>s %20<all>s", label: "ratio of Pss", plain: "", all: "with the monitor"),
      ratio_line("with ÷ without reforking", @without), ratio_line("with ÷ one warm process", @single),
      "", conclusion
    ].flatten.join("\n")
  end

  private

  def section_lines(section)
    rows = [section.monitor, *section.rows].compact.map { |row| row_line(row) }
    rows << total_line("total", section.total) if section.monitor
    rows << total_line("total with the monitor", section.total_with_monitor) if section.monitor
    [section.title, *rows, ""]
  end

  def row_line(row)
    format("  %-26<role>s %8<pid>d %8.1<pss>f %14.1<dirty>f  %<bar>s",
           role: row.role, pid: row.pid, pss: row.memory.pss, dirty: row.memory.private_dirty, bar: bar(row.memory.pss))
  end

  def total_line(label, total)
    format("  %-35<label>s %8.1<total>f", label: label, total: total)
  end

  def ratio_line(label, section)
    format("  %-26<label>s %8<plain>s %20<all>s",
           label: label, plain: format("%.2f", ratio(section)),
           all: format("%.2f", ratio(section, :total_with_monitor)))
  end

  def bar(megabytes)
    full, eighth = (megabytes / largest * BAR_WIDTH * 8).round.divmod(8)
    ("█" * full) + EIGHTHS[eighth]
  end

  def largest
    [@single, @without, @with].flat_map(&:rows).map { |row| row.memory.pss }.max
  end

  def ratio(section, total = :total)
    (@with.public_send(total) / section.public_send(total)).round(3)
  end

  def conclusion
    workers = @with.rows.size - 1
    sizes = format("%<with>.0f MB instead of %<without>.0f MB", with: @with.total, without: @without.total)
    return "Reforking saved nothing here: #{workers} warm workers and their mold hold #{sizes}." if ratio(@without) >= 1

    format("With reforking %<workers>d warm workers and their mold hold %<sizes>s, %<percent>d %% of it, " \
           "and %<times>.2f times what one warm process needs.",
           workers: workers, sizes: sizes, percent: (ratio(@without) * 100).round, times: ratio(@single))
  end

  def thousands(number)
    number.to_s.gsub(/(?<=\d)(?=(\d{3})+\z)/, ",")
  end
end
