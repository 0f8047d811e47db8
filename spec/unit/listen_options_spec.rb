# frozen_string_literal: true

require "pitchfork_rs/configurator"

RSpec.describe "the options of listen", :in_tmpdir do
  def configure(source, **options)
    File.write("pitchfork.rb", source)
    PitchforkRs::Configurator.new(config_file: "pitchfork.rb", **options)
  end

  def options_of(source) = configure(source).listeners.first.last

  # What is said about the first line of a file, without the place.
  def complaint_of(source)
    configure(source)
    nil
  rescue PitchforkRs::ConfigurationError => e
    e.message.delete_prefix("pitchfork.rb:1: ")
  end

  it "have defaults" do
    expect(configure("listen 80").listeners).to eq(
      [["0.0.0.0:80", { backlog: 1024, rcvbuf: nil, sndbuf: nil, tcp_nodelay: true, tcp_nopush: false,
                        tcp_defer_accept: 1, ipv6only: nil, reuseport: false, queues: 1, queues_per_worker: 1,
                        umask: 0, tries: 5, delay: 0.5 }]]
    )
  end

  it "are those of the address, and may be a Hash" do
    config = configure("listen(80, { backlog: 1 })\nlisten '/a', umask: 0o77")
    expect(config.listeners.map { |address, options| [address, *options.values_at(:backlog, :umask)] })
      .to eq([["0.0.0.0:80", 1, 0], ["/a", 1024, 0o77]])
  end

  it "of an address given twice are those of both" do
    config = configure("listen 80, backlog: 5\nlisten 81\nlisten '0.0.0.0:80', tries: 1", listeners: ["*:81"])
    expect(config.listeners.to_h.transform_values { |options| options.values_at(:backlog, :tries) })
      .to eq("0.0.0.0:80" => [5, 1], "0.0.0.0:81" => [1024, 5])
    expect(configure("listen 80, backlog: 5\nlisten 80, backlog: 6").listeners.first.last[:backlog]).to eq(6)
  end

  it "are the defaults where nil is given" do
    expect(options_of("listen 80, backlog: 5\nlisten 80, backlog: nil, tcp_nopush: nil, umask: nil"))
      .to include(backlog: 1024, tcp_nopush: false, umask: 0)
  end

  it "may be larger than the kernel can be told" do
    huge = 1 << 80
    expect(options_of("listen 80, backlog: #{huge}, rcvbuf: #{huge}, sndbuf: #{huge}, queues_per_worker: #{huge}"))
      .to include(backlog: 0x7fff_ffff, rcvbuf: 0x7fff_ffff, sndbuf: 0x7fff_ffff, queues_per_worker: 0x7fff_ffff)
  end

  it "say how many queues each worker has: all but one, but one at least" do
    { 1 => 1, 2 => 1, 8 => 7 }.each do |queues, share|
      expect(options_of("listen 80, queues: #{queues}")[:queues_per_worker]).to eq(share)
    end
    expect(options_of("listen 80, queues: 8, queues_per_worker: 2")[:queues_per_worker]).to eq(2)
  end

  it "say for how long a silent connection is kept back, in seconds or by true and false" do
    { "true" => 1, "false" => 0, "0" => 0, "30" => 30, "nil" => 1 }.each do |written, seconds|
      expect(options_of("listen 80, tcp_defer_accept: #{written}")[:tcp_defer_accept]).to eq(seconds)
    end
  end

  it "are accepted where they mean nothing, so that one Hash does for all addresses" do
    all = "{ umask: 0o22, tcp_nodelay: false, tcp_nopush: true, tcp_defer_accept: 3, ipv6only: true, reuseport: true }"
    expect(complaint_of("listen 80, #{all}; listen '/a.sock', #{all}; listen '[::1]:80', #{all}")).to be_nil
  end

  it "are refused when they are not known, with a suggestion" do
    expect(complaint_of("listen 80, backlgo: 5")).to eq("listen: unknown option :backlgo; did you mean :backlog?")
    expect(complaint_of("listen 80, 'backlog' => 5")).to eq('listen: unknown option "backlog"; did you mean :backlog?')
    expect(complaint_of("listen 80, umsak: nil")).to eq("listen: unknown option :umsak; did you mean :umask?")
    expect(complaint_of("listen 80, accept_filter: 1")).to eq("listen: unknown option :accept_filter")
    expect(complaint_of("listen 80, nil")).to eq("listen: got nil, wanted options such as backlog: value")
  end

  {
    "backlog: 0" => "backlog: got 0 (Integer), wanted an Integer of at least 1",
    "rcvbuf: '1M'" => 'rcvbuf: got "1M" (String), wanted an Integer of at least 1',
    "sndbuf: 0" => "sndbuf: got 0 (Integer), wanted an Integer of at least 1",
    "tcp_nodelay: 1" => "tcp_nodelay: got 1 (Integer), wanted true or false",
    "tcp_nopush: 0" => "tcp_nopush: got 0 (Integer), wanted true or false",
    "ipv6only: 'no'" => 'ipv6only: got "no" (String), wanted true or false',
    "reuseport: 4" => "reuseport: got 4 (Integer), wanted true or false",
    "queues: 0" => "queues: got 0 (Integer), wanted an Integer from 1 to 1024",
    "queues: 1025" => "queues: got 1025 (Integer), wanted an Integer from 1 to 1024",
    "queues_per_worker: 0" => "queues_per_worker: got 0 (Integer), wanted an Integer of at least 1",
    "umask: 0o1000" => "umask: got 512 (Integer), wanted an Integer from 0 to 0777",
    "umask: '077'" => 'umask: got "077" (String), wanted an Integer from 0 to 0777',
    "tcp_defer_accept: -1" =>
      "tcp_defer_accept: got -1 (Integer), wanted true, false or an Integer of seconds from 0 to 32767",
    "tries: 0.5" => "tries: got 0.5 (Float), wanted an Integer",
    "delay: -1" => "delay: got -1 (Integer), wanted a number of seconds of at least 0",
    "delay: Float::NAN" => "delay: got NaN (Float), wanted a number of seconds of at least 0"
  }.each do |written, complaint|
    it "are refused with values they cannot have: #{written}" do
      expect(complaint_of("listen 80, #{written}")).to eq("listen: #{complaint}")
    end
  end

  it "are refused when a Unix socket shall have several queues" do
    expect(complaint_of("listen '/a.sock', queues: 2"))
      .to eq("listen: queues: got 2 (Integer), wanted 1: a Unix socket has one queue")
    expect(complaint_of("listen '/a.sock', queues: 1")).to be_nil
  end

  describe "and check_client_connection" do
    it "goes without tcp_nopush: true, whichever comes first" do
      complaint = "pitchfork.rb: check_client_connection: got true, and tcp_nopush: true for 0.0.0.0:80: " \
                  "wanted one of them at most"
      expect(complaint_of("check_client_connection true\nlisten 80, tcp_nopush: true")).to eq(complaint)
      expect(complaint_of("listen 80, tcp_nopush: true\ncheck_client_connection true")).to eq(complaint)
      expect(complaint_of("listen 80, tcp_nopush: false\ncheck_client_connection true")).to be_nil
      expect(complaint_of("listen 80, tcp_nopush: true\ncheck_client_connection false")).to be_nil
    end
  end
end
