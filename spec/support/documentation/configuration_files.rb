# frozen_string_literal: true

require "json"
require "open3"

module Documentation
  # Looks at configuration of other programs: by its form, and with the program itself where that is installed. The
  # command line of the server in it is checked by the server's own command.
  module ConfigurationFiles
    SECTIONS = { "service" => %w[Unit Service Install], "socket" => %w[Unit Socket Install] }.freeze
    INSTRUCTIONS = %w[FROM RUN WORKDIR COPY ENV EXPOSE USER STOPSIGNAL CMD ENTRYPOINT].freeze
    ROTATION = %w[daily weekly size rotate missingok notifempty compress delaycompress sharedscripts create su
                  postrotate endscript].freeze
    private_constant :SECTIONS, :INSTRUCTIONS, :ROTATION

    private

    def verify_unit(block)
      name = block.info.split.last
      expect(lines(block)).to all(match(/\A(?:\[\w+\]|\w+=\S.*|#.*|)\z/))
      expect(block.text.scan(/^\[(\w+)\]$/).flatten - SECTIONS.fetch(name[/\w+\z/])).to be_empty
      block.text[/^ExecStart=.*pitchfork-rs(.*)$/, 1]&.then { |arguments| check_in_application(block, arguments) }
      write_units(block.page)
      expect_silence(/#{name}/, "systemd-analyze", "verify", "./#{name}")
    end

    # A unit may name the others of its page. The programs that they start need not be installed here.
    def write_units(page)
      page.blocks.each do |block|
        next unless block.info.start_with?("ini systemd ")

        File.write(block.info.split.last, block.text.gsub(/^(Exec\w+)=\S+/, "\\1=/bin/true"))
      end
    end

    def verify_logrotate(block)
      head, *directives, tail = lines(block).reject(&:empty?)
      expect([head, tail]).to match([%r{\A(/\S+ )+\{\z}, "}"])
      in_script = false
      directives.each do |line|
        in_script = false if line.strip == "endscript"
        expect(ROTATION).to include(line.split.first) unless in_script
        in_script = true if line.strip == "postrotate"
      end
      File.write("rotation", block.text)
      expect_silence(/error/, "logrotate", "--debug", "rotation")
    end

    def verify_dockerfile(block)
      found = block.text.gsub(/^#.*|\\\n/, "").lines(chomp: true).reject(&:empty?)
      instructions = found.to_h { |line| line.split(" ", 2) }
      expect(instructions.keys - INSTRUCTIONS).to be_empty
      # In the other form a shell would be process 1, and get the signals.
      command = JSON.parse(instructions.fetch("CMD"))
      check_in_application(block, command.drop(command.index("pitchfork-rs") + 1).join(" "))
    end

    def verify_procfile(block)
      lines(block).each do |line|
        expect(line).to match(/\A[\w-]+: \S/)
        line[/pitchfork-rs(.*)/, 1]&.then { |arguments| check_in_application(block, arguments) }
      end
    end

    def verify_nginx(block)
      ends = lines(block).map { |line| line.sub(/#.*/, "").strip[-1] }.compact
      expect(ends.uniq - %w[; { }]).to be_empty
      expect(ends.count("{")).to eq(ends.count("}"))
      File.write("nginx.conf", "events {}\nhttp {\n#{block.text}\n}\n")
      expect_silence(/nginx\.conf:\d/, "nginx", "-t", "-p", Dir.pwd, "-e", "stderr", "-c", "nginx.conf")
    end

    def lines(block) = block.text.lines(chomp: true)

    # Checks a command line of the server's, beside the configuration that the page has shown by then.
    def check_in_application(block, arguments)
      furnish(config: block.above("ruby config", ""))
      check_command_line(arguments)
    end

    # Nothing that a program prints looks so; nor is there anything to say where it is not installed.
    def expect_silence(complaint, *command)
      printed, = Open3.capture2e({ "LC_ALL" => "C" }, *command)
      expect(printed.lines.grep(complaint)).to be_empty
    rescue Errno::ENOENT
      nil
    end
  end
end
