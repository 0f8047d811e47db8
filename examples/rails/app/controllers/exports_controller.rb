# frozen_string_literal: true

# All entries, one JSON object a line, each sent as soon as it has been read.
class ExportsController < ApplicationController
  include ActionController::Live

  def show
    response.set_header("content-type", "application/x-ndjson")
    Entry.find_each(batch_size: 100) { |entry| response.stream.write("#{entry.to_json}\n") }
  rescue ActionController::Live::ClientDisconnected
    logger.info("the client of an export has gone")
  ensure
    response.stream.close
  end
end
