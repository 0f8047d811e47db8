# frozen_string_literal: true

# A look at what a process has open.
module Descriptors
  # What the descriptors of a process are, as links, by number. Those that are closed meanwhile are left out; a process
  # that has ended has none.
  def self.of(pid)
    Dir.children("/proc/#{pid}/fd").to_h { |number| [number.to_i, target(pid, number)] }.compact
  rescue Errno::ENOENT
    {}
  end

  def self.target(pid, number)
    File.readlink("/proc/#{pid}/fd/#{number}")
  rescue SystemCallError
    nil
  end
  private_class_method :target
end
