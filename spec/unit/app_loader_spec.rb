# frozen_string_literal: true

require "pitchfork_rs/app_loader"

RSpec.describe PitchforkRs::AppLoader, :in_tmpdir do
  def load_app(name, source)
    File.binwrite(name, source)
    described_class.new(name).call
  end

  def body_of(name, source)
    load_app(name, source).call({}).last
  end

  describe "of a .ru file" do
    it "builds the application the file runs" do
      app = load_app("config.ru", "require 'rack/files'\nrun Rack::Files.new('.')\n")
      expect(app).to be_a(Rack::Files)
    end

    it "adds nothing to it, not even in development" do
      app = load_app("config.ru", "APP_OF_THE_FILE = ->(_env) { }\nrun APP_OF_THE_FILE\n")
      expect(app).to equal(APP_OF_THE_FILE)
    end

    it "applies the file's middleware and maps" do
      app = load_app("config.ru", <<~RUBY)
        use(Class.new { def initialize(app) = @app = app; def call(env) = @app.call(env) << :through })
        map("/a") { run ->(_env) { [200, {}, []] } }
      RUBY
      expect(app.call({ "PATH_INFO" => "/a", "SCRIPT_NAME" => "" })).to eq([200, {}, [], :through])
    end

    it "resolves constants at the top level, and keeps local variables to itself" do
      body = body_of("config.ru", <<~RUBY)
        local_of_config_ru = [self.class, Module.nesting, __FILE__, __LINE__]
        run ->(_env) { [200, {}, local_of_config_ru] }
      RUBY
      expect(body).to eq([Rack::Builder, [], "config.ru", 1])
      expect(TOPLEVEL_BINDING.local_variables).not_to include(:local_of_config_ru)
    end

    it "honours a frozen_string_literal comment" do
      source = "run ->(_env) { [200, {}, 'text'.frozen?] }\n"
      by_default = TOPLEVEL_BINDING.eval("'text'.frozen?") # an option of Ruby's changes it
      expect(body_of("default.ru", source)).to be(by_default)
      expect(body_of("thawed.ru", "# frozen_string_literal: false\n#{source}")).to be(false)
      expect(body_of("frozen.ru", "# A comment first\n# frozen_string_literal: true\n\n#{source}")).to be(true)
    end

    it "takes the file for UTF-8, whatever the locale, unless a comment names another encoding" do
      source = "run ->(_env) { [200, {}, '\u00E9'] }\n"
      utf8 = body_of("utf8.ru", "\uFEFF#{source}")
      latin = body_of("latin.ru", "# encoding: iso-8859-1\n#{source}".encode("ISO-8859-1"))
      expect([utf8, utf8.encoding]).to eq(["\u00E9", Encoding::UTF_8])
      expect([latin.bytes, latin.encoding]).to eq([[0xE9], Encoding::ISO_8859_1])
    end

    it "ends the file at __END__" do
      expect(body_of("config.ru", "run ->(_env) { [200, {}, 1] }\n__END__\nrun ] not Ruby\n")).to eq(1)
      expect(body_of("crlf.ru", "run ->(_env) { [200, {}, 2] }\r\n__END__\r\nnot ] Ruby\r\n")).to eq(2)
    end

    it "raises what the file raises, at the file's line" do
      expect { load_app("config.ru", "# frozen_string_literal: true\n\nraise IOError, 'no'\n") }.to raise_error(
        an_instance_of(IOError).and(having_attributes(backtrace: start_with(/\Aconfig\.ru:3:/)))
      )
      expect { load_app("broken.ru", "run(\n") }.to raise_error(SyntaxError, /\Abroken\.ru:[12]:/)
    end

    it "says when the file has gone since" do
      File.write("config.ru", "")
      loader = described_class.new("config.ru")
      File.delete("config.ru")
      expect { loader.call }
        .to raise_error(PitchforkRs::ConfigurationError, "config.ru: cannot be read (No such file or directory)")
    end
  end

  describe "of a .rb file" do
    it "takes the constant in camel case" do
      expect(load_app("first_spec_app.rb", "FirstSpecApp = :first")).to eq(:first)
    end

    it "takes the capitalised constant if the other is not there" do
      expect(load_app("second_spec_app.rb", "Second_spec_app = :second")).to eq(:second)
    end

    it "says which constants it looked for" do
      expect { load_app("third_spec_app.rb", "") }.to raise_error(
        PitchforkRs::ConfigurationError, "third_spec_app.rb: does not define ThirdSpecApp or Third_spec_app"
      )
    end

    it "finds a file in the load path" do
      Dir.mkdir("elsewhere")
      File.write("elsewhere/fourth_spec_app.rb", "FourthSpecApp = :fourth")
      $LOAD_PATH.unshift(File.expand_path("elsewhere"))
      expect(described_class.new("fourth_spec_app.rb").call).to eq(:fourth)
    ensure
      $LOAD_PATH.shift
    end
  end

  describe "refusals" do
    it "names a file that does not exist" do
      %w[missing.ru missing.rb].each do |path|
        expect { described_class.new(path).verify }
          .to raise_error(PitchforkRs::ConfigurationError, "#{path}: no such file")
      end
    end

    it "names a path that is no file" do
      Dir.mkdir("directory.ru")
      expect { described_class.new("directory.ru").verify }
        .to raise_error(PitchforkRs::ConfigurationError, "directory.ru: is not a readable file")
    end

    it "names an extension it does not know" do
      File.write("app.py", "")
      expect do
        described_class.new("app.py")
      end.to raise_error(PitchforkRs::ConfigurationError, /\Aapp\.py: wanted .*\.ru/)
    end
  end

  describe "#options_line" do
    def options_line(source, name = "config.ru")
      File.binwrite(name, source)
      described_class.new(name).options_line
    end

    it "is the words after #\\" do
      line = options_line("# Hello \xFF\n#\\ -p 9999 -w -o 'a b'\nrun 1\n#\\ -p 1\n")
      expect(line).to eq(["-p", "9999", "-w", "-o", "a b"])
    end

    it "may follow a byte order mark" do
      expect(options_line("\uFEFF#\\ -w\n")).to eq(["-w"])
    end

    it "is empty where there is none" do
      expect(options_line("run 1 #\\ -p 9999\n__END__\n#\\ -w\n")).to eq([])
      expect(options_line("run 1\r\n__END__\r\n#\\ -w\r\n")).to eq([])
      expect(options_line("#\\ -w\n", "app.rb")).to eq([])
    end

    it "says when a quotation is not closed" do
      expect { options_line("# one\n#\\ -o 'a\n") }
        .to raise_error(PitchforkRs::ConfigurationError, /\Aconfig\.ru:2: options line: .*quote/i)
    end
  end
end
