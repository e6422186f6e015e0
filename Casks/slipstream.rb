# Made by packaging/cask.py; change that instead.
cask "slipstream" do
  version "0.1.0"
  sha256 :no_check

  url "https://github.com/slipstream-app/slipstream/releases/download/v#{version}/Slipstream-#{version}-arm64.dmg"
  name "Slipstream"
  desc "Local language models, faster by speculative decoding"
  homepage "https://github.com/slipstream-app/slipstream"

  livecheck do
    url :url
    strategy :github_latest
  end

  depends_on arch: :arm64
  depends_on macos: ">= :sonoma"

  app "Slipstream.app"
  binary "#{appdir}/Slipstream.app/Contents/Resources/bin/slipstream"

  uninstall launchctl: "org.slipstream.app",
            quit:      "org.slipstream.app"

  zap trash: [
    "~/Library/Application Support/Slipstream",
    "~/Library/Caches/Slipstream",
    "~/Library/HTTPStorages/org.slipstream.app",
    "~/Library/LaunchAgents/org.slipstream.app.plist",
    "~/Library/Preferences/com.slipstream.Slipstream.plist",
    "~/Library/Saved Application State/org.slipstream.app.savedState",
  ]

  caveats <<~EOS
    Models stay in the Hugging Face cache, which other programs use too.
  EOS
end
