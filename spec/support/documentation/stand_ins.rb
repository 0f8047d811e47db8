# frozen_string_literal: true

# Stand-ins for the libraries that examples of the documentation name, where these are not installed: as much of them as
# the examples use, so that their hooks run.

module ActiveRecord
  class Base
    Handler = Struct.new(:cleared) do
      def clear_all_connections! = self.cleared = true
    end

    def self.connection_handler = @connection_handler ||= Handler.new(false)

    def self.establish_connection = true
  end
end

module Sequel
  DATABASES = [Struct.new(:connected) { def disconnect = self.connected = false }.new(true)] # rubocop:disable Style/MutableConstant
end

class Bunny
  def start = self
end
