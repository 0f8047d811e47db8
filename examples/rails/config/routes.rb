# frozen_string_literal: true

Rails.application.routes.draw do
  root "entries#index"
  resources :entries, only: :create do
    get :attachment, on: :member
  end
  resource :export, only: :show
  resource :health, only: :show, controller: "health"
end
