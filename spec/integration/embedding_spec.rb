# frozen_string_literal: true

require "support/server"
require "open3"

RSpec.describe "a program that embeds the server", :server do
  it "goes on after it, with its address free and its signal handlers as they were" do
    File.write("program.rb", <<~'RUBY')
      require "pitchfork_rs"
      old = trap("TERM") { puts "the program's own"; $stdout.flush }
      2.times do
        options = { listeners: ["127.0.0.1:0"], logger: Logger.new($stderr), config_file: nil }
        server = PitchforkRs::HttpServer.new(->(env) { [200, {}, [env["PATH_INFO"]]] }, options).start
        Process.kill("QUIT", Process.pid)
        puts "status #{server.join}"
      end
      Process.kill("TERM", Process.pid)
      puts Dir.children("/proc/self/fd").count { |fd| File.readlink("/proc/self/fd/#{fd}").start_with?("socket:") rescue false }
    RUBY
    library = File.expand_path("../../lib", __dir__)
    output, log, status = Open3.capture3(RbConfig.ruby, "-I#{library}", "program.rb")
    expect(output.lines(chomp: true)).to eq(["status 0", "status 0", "the program's own", "0"]), log
    expect(status).to be_success
  end
end
