# frozen_string_literal: true

# A sum of what all processes have counted.
class Tally < ApplicationRecord
  # @param counts [Hash{String => Integer}]
  def self.add(counts)
    rows = counts.map { |name, value| { name: name, value: value } }
    with_connection do |connection|
      upsert_all(rows, unique_by: :name, on_duplicate: Arel.sql("value = value + excluded.value"))
    ensure
      # This may be a thread on which before_fork does not wait, and SQLite's connections must not be open at a fork.
      connection.disconnect!
    end
  end
end
