# frozen_string_literal: true

# What a guest has written, with a file if there was one.
class Entry < ApplicationRecord
  STORE = Rails.root.join("storage").tap(&:mkpath)
  private_constant :STORE

  validates :author, :text, presence: true

  # @param file [ActionDispatch::Http::UploadedFile]
  def upload=(file)
    self.attachment = SecureRandom.uuid
    FileUtils.cp(file.path, attachment_path)
  end

  def attachment_path
    STORE.join(attachment)
  end
end
