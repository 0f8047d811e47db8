# frozen_string_literal: true

# All hooks there are. Each notes its name behind that of the process it runs in.
role = "monitor"
note = ->(hook) { File.write(ENV.fetch("HOOK_NOTES"), "#{role}\t#{hook}\n", mode: "a") }
name = ->(process) { process.to_log[/.* gen=\d+/] }

worker_processes 1
listen ENV.fetch("HOOK_LISTEN")
timeout 3, cleanup: 2

after_monitor_ready { |_server| note["after_monitor_ready"] }

after_mold_fork do |_server, mold|
  role = name[mold]
  note["after_mold_fork"]
end
before_fork { |_server| note["before_fork"] }

after_worker_fork do |_server, worker|
  role = name[worker]
  note["after_worker_fork"]
end
after_worker_ready { |_server, _worker| note["after_worker_ready"] }
after_request_complete { |_server, _worker, _env| note["after_request_complete"] }
after_worker_timeout { |_server, _worker, _info| note["after_worker_timeout"] }
before_worker_exit { |_server, _worker| note["before_worker_exit"] }

before_service_worker_ready do |_server, service|
  role = name[service]
  note["before_service_worker_ready"]
end
before_service_worker_exit { |_server, _service| note["before_service_worker_exit"] }

after_worker_hard_timeout { |_server, worker| note["after_worker_hard_timeout (#{name[worker]})"] }
after_worker_exit { |_server, process, _status| note["after_worker_exit (#{name[process]})"] }
