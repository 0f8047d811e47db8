# frozen_string_literal: true

require "json"
require "open3"
require "yaml"

# What users of Pitchfork bring along, and the examples that prove that it works: `spec/compatibility.yml`.
class Compatibility
  ROOT = File.expand_path("../..", __dir__)
  private_constant :ROOT

  # One line of the table.
  Row = Struct.new(:section, :text, :more, :proofs)
  # The file of an example, and how its description ends or what the test is called.
  Proof = Struct.new(:file, :name)

  def rows
    @rows ||= YAML.load_file(File.join(ROOT, "spec/compatibility.yml")).flat_map do |section|
      section.fetch("rows").map { |row| read(section.fetch("title"), row) }
    end
  end

  # Those that no example is there for.
  def unproven = rows.flat_map { |row| row.proofs.reject { |proof| there?(proof) } }

  # The page.
  def to_s
    tables = rows.group_by(&:section).map do |title, rows|
      "## #{title}\n\n| what | + | proven by |\n| --- | --- | --- |\n#{rows.map { |row| line(row) }.join}"
    end
    "#{INTRODUCTION}\n#{tables.join("\n")}"
  end

  INTRODUCTION = <<~MARKDOWN
    # Compatibility with Pitchfork

    What users of [Pitchfork](https://github.com/Shopify/pitchfork) 0.18 bring along, and find working, each with the specs that
    prove it. A + marks what goes beyond Pitchfork. What differs on purpose is in
    [migrating-from-pitchfork.md](migrating-from-pitchfork.md), and what is served and refused as HTTP in [HTTP.md](HTTP.md).

    (Made from `spec/compatibility.yml` by `rake docs:compatibility`. A spec fails when an example that is named there is
    gone.)
  MARKDOWN
  private_constant :INTRODUCTION

  private

  def read(section, row)
    proofs = row.fetch("proof").flat_map do |file, names|
      file = "spec/#{file}_spec.rb" unless file.end_with?(".rs")
      names.map { |name| Proof.new(file, name) }
    end
    Row.new(section, row.fetch("row"), row.fetch("more", false), proofs)
  end

  def there?(proof)
    file = File.join(ROOT, proof.file)
    return File.exist?(file) && File.read(file).match?(/\bfn #{proof.name}\(/) if file.end_with?(".rs")

    examples.fetch(proof.file, []).any? { |description| " #{description}".end_with?(" #{proof.name}") }
  end

  # The descriptions of all examples there are, by file. In a process of its own, since this one may have loaded others.
  def examples
    @examples ||= begin
      files = rows.flat_map { |row| row.proofs.map(&:file) }.uniq.grep(/_spec\.rb\z/)
      files.select! { |file| File.exist?(File.join(ROOT, file)) }
      out, status = Open3.capture2("bundle", "exec", "rspec", "--dry-run", "--format", "json", *files, chdir: ROOT)
      raise "rspec cannot load the specs:\n#{out}" unless status.success?

      JSON.parse(out[/^\{.*\}$/]).fetch("examples").group_by { |example| example["file_path"].delete_prefix("./") }
          .transform_values { |found| found.map { |example| example["full_description"] } }
    end
  end

  def line(row)
    files = row.proofs.group_by(&:file).map do |file, proofs|
      names = proofs.map { |proof| escape(proof.name) }.join("; ")
      "[#{File.basename(file, ".*").delete_suffix("_spec")}](../#{file}): #{names}"
    end
    "| #{escape(row.text)} | #{"+" if row.more} | #{files.join("<br>")} |\n"
  end

  def escape(text) = text.gsub("|", '\|')
end
