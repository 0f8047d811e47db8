# frozen_string_literal: true

require "support/documentation/examples"

RSpec.describe "The documentation", :server do
  include Documentation::Examples

  Documentation.pages.each do |page|
    describe page.file do
      page.blocks.each do |block|
        it("line #{block.line}: #{block.info}") { execute(block) }
      end

      it "leads somewhere with each of its links" do
        dead = page.links.reject do |link|
          path, anchor = link.split("#")
          file = path.to_s.empty? ? page.file : File.join(File.dirname(page.file), path).delete_prefix("./")
          File.exist?(File.join(Documentation::ROOT, file)) &&
            (anchor.nil? || Documentation.page(file).anchors.include?(anchor))
        end
        expect(dead).to be_empty
      end
    end
  end
end
