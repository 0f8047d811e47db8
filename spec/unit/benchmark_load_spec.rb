# frozen_string_literal: true

require_relative "../../benchmark/lib/run/load"

RSpec.describe Run::Load do
  describe ".parse_wrk" do
    # As wrk 4.1 writes it.
    let(:output) { <<~TEXT }
      Running 1s test @ http://127.0.0.1:17001/
        1 threads and 4 connections
        Thread Stats   Avg      Stdev     Max   +/- Stdev
          Latency   217.26us  180.59us   5.21ms   96.11%
          Req/Sec    16.62k     1.20k   18.03k    63.64%
        Latency Distribution
           50%  196.00us
           75%  240.00us
           90%  301.00us
           99%    1.25ms
        18243 requests in 1.10s, 1.74MB read
      Requests/sec:  16584.24
      Transfer/sec:      1.58MB
    TEXT

    it "reads requests, time and percentiles in microseconds" do
      seen = described_class.parse_wrk(output)
      expect(seen.to_h).to eq(requests: 18_243, seconds: 1.1, p50: 196.0, p99: 1250.0, kinds: {})
      expect(seen.rate).to be_within(1).of(16_585)
    end

    it "reads times in seconds and minutes" do
      seen = described_class.parse_wrk(output.sub("in 1.10s", "in 1.50m").sub("196.00us", "1.20s"))
      expect([seen.seconds, seen.p50]).to eq([90.0, 1_200_000.0])
    end

    [
      ["answers that are not 200", "Non-2xx or 3xx responses: 12"],
      ["broken connections", "Socket errors: connect 0, read 3, write 0, timeout 0"]
    ].each do |what, line|
      it "fails on #{what}" do
        expect { described_class.parse_wrk(output.sub("Requests/sec", "  #{line}\nRequests/sec")) }
          .to raise_error(Run::Load::Errors, line)
      end
    end

    it "fails if there was no request at all" do
      expect { described_class.parse_wrk(output.sub("18243", "0")) }.to raise_error(Run::Load::Errors)
    end

    it "fails on what it does not know" do
      expect { described_class.parse_wrk("unable to connect") }.to raise_error(Run::Load::Errors, /unable to connect/)
      expect { described_class.parse_wrk(output.sub("99%", "98%")) }.to raise_error(Run::Load::Errors, /about 99 %/)
    end
  end

  describe ".parse_floor" do
    it "reads requests of one kind" do
      seen = described_class.parse_floor("all\t100\t0.500000\t12.5\t80.1\t90.0\nget\t100\t0.500000\t12.5\t80.1\t90.0\n")
      expect(seen.to_h).to eq(requests: 100, seconds: 0.5, p50: 12.5, p99: 80.1, kinds: {})
    end

    it "tells several kinds apart" do
      rows = [%w[all 100 0.5 12.5 80.1 90.0], %w[quick 90 0.5 10.0 20.0 30.0], %w[long 10 0.5 70.0 90.0 90.0]]
      seen = described_class.parse_floor(rows.map { |row| "#{row.join("\t")}\n" }.join)
      expect(seen.kinds).to eq("quick" => 20.0, "long" => 90.0)
    end

    it "fails if there was no request at all" do
      expect { described_class.parse_floor("all\t0\t0.500000\t0.0\t0.0\t0.0\n") }.to raise_error(Run::Load::Errors)
      expect { described_class.parse_floor("") }.to raise_error(Run::Load::Errors)
    end
  end
end
