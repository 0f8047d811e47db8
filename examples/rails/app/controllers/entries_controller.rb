# frozen_string_literal: true

# The book, and what is added to it.
class EntriesController < ApplicationController
  def index
    @visits = session[:visits] = session[:visits].to_i + 1
    # The key of the cached list. Times of change would not do: who writes last need not have the latest one.
    @newest = Entry.maximum(:id)
    @entries = Entry.order(id: :desc).limit(20)
  end

  def create
    Entry.create!(params.require(:entry).permit(:author, :text, :upload))
    redirect_to root_path
  end

  def attachment
    entry = Entry.where.not(attachment: nil).find(params[:id])
    send_file entry.attachment_path
  end
end
