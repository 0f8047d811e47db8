# frozen_string_literal: true

ActiveRecord::Schema[7.2].define(version: 1) do
  create_table :entries do |t|
    t.string :author, null: false
    t.text :text, null: false
    t.string :attachment
    t.timestamps
  end

  create_table :tallies do |t|
    t.string :name, null: false, index: { unique: true }
    t.integer :value, null: false
  end
end
