# frozen_string_literal: true

# A look at the processes of a server from outside, as `ps` has it.
module ServerProcesses
  # One process and its title.
  Entry = Struct.new(:pid, :title) do
    def generation = title[/\(gen:(\d+)\)/, 1]&.to_i
    def nr = title[/worker\[(\d+)\]/, 1]&.to_i
    def mold? = title.match?(/\) mold - /)
    def worker? = !nr.nil?
    def idle? = title.end_with?("waiting")
    def status = title[/ - (.*)/, 1]
    def sleeping? = state == "S"
    def state = File.read("/proc/#{pid}/stat")[/.*\) (\S)/m, 1]
  end

  # The monitor's children, but not their remains.
  def children
    all_pids.filter_map { |child| entry(child) if parent_of(child) == pid }
  end

  def workers = children.select(&:worker?).sort_by(&:nr)

  def idle_workers = workers.select(&:idle?)

  def worker(number = 0) = workers.find { |worker| worker.nr == number }

  def mold = children.find { |child| child.mold? && child.status == "ready" }

  def reactor = children.find { |child| child.title == "pitchfork-rs reactor" }

  def monitor_title = entry(pid).title

  # The numbers of the listening sockets that a process waits at with epoll(7), out of those that were logged.
  def watched_by(pid)
    listeners = log.scan(/listening on addr=\S+ fd=(\d+)/).flatten.map(&:to_i)
    infos = Dir.children("/proc/#{pid}/fdinfo").map { |number| File.read("/proc/#{pid}/fdinfo/#{number}") }
    infos.flat_map { |info| info.scan(/^tfd:\s+(\d+)/).flatten.map(&:to_i) } & listeners
  rescue Errno::ENOENT, Errno::ESRCH
    [] # it has ended, or closed one of them, meanwhile
  end

  # Everything that was started in the server's directory, whoever its parent is by now.
  def processes
    all_pids.select do |pid|
      File.readlink("/proc/#{pid}/cwd") == directory
    rescue SystemCallError
      false
    end
  end

  def running?(pid) = processes.include?(pid)

  private

  def all_pids = Dir.children("/proc").grep(/\A\d+\z/).map(&:to_i)

  def parent_of(pid)
    # The name, in parentheses, may hold anything.
    File.read("/proc/#{pid}/stat")[/.*\) \S+ (\d+)/m, 1].to_i
  rescue SystemCallError
    nil
  end

  def entry(pid)
    title = File.read("/proc/#{pid}/cmdline").delete("\0").strip
    Entry.new(pid, title) unless title.empty?
  rescue SystemCallError
    nil
  end

  # Gives what is still there some time to notice that the monitor has gone, then ends it.
  def end_survivors
    wait_until("the end of all processes", seconds: 6) { processes.empty? }
    []
  rescue Waiting::Late
    processes.each do |pid|
      Process.kill(:KILL, pid)
    rescue Errno::ESRCH
      nil
    end
  end
end
