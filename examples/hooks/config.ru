# frozen_string_literal: true

run lambda { |env|
  case env["PATH_INFO"]
  when "/slow" then sleep
  when "/stopped" then Process.kill(:STOP, Process.pid)
  end
  [200, { "content-type" => "text/plain" }, ["fine\n"]]
}
