# frozen_string_literal: true

require_relative "../support/corpus/app"

run Corpus::App.new
