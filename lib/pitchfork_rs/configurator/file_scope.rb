# frozen_string_literal: true

# The lexical scope of configuration files: a constant in them, also in their hooks and classes, is looked up here, and
# then at the top level. It stands inside no other module, and holds only names that people have in their files: any
# further one would hide a constant of the application's. Its models are called `Environment`, `Log` or `Command`, too.
# @api private
module PitchforkRs::Configurator::FileScope # rubocop:disable Style/ClassAndModuleChildren
  # @param namespace [Module]
  # @param names [Array<Symbol>] of constants there; what is not loaded is left out
  # @return [void]
  def self.offer(namespace, names)
    names.each do |name|
      const_set(name, namespace.const_get(name)) if namespace.const_defined?(name) && !const_defined?(name, false)
    end
  end

  # @param configurator [Configurator] the file's self
  # @return [void]
  def self.evaluate(configurator, ...)
    # What follows the receiver has no names here, because local variables of ours would be the file's, too.
    configurator.instance_eval(...)
  end
end
