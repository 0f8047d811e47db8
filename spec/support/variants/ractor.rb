# frozen_string_literal: true

# Once there was a second Ractor, Ruby takes locks and goes other ways, for good and also in children.
Warning[:experimental] = false
ractor = Ractor.new { nil }
ractor.respond_to?(:value) ? ractor.value : ractor.take
