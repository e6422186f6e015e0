# Loads a Cask without Homebrew and prints its stanzas as JSON, for the tests. Unknown stanzas are errors.
require "json"

KNOWN = %i[version sha256 url name desc homepage app binary uninstall zap caveats depends_on strategy].freeze

class Stanzas
  attr_reader :said

  def initialize
    @said = Hash.new { |hash, key| hash[key] = [] }
  end

  def appdir = "/Applications"

  def version(value = nil)
    return @said[:version].first if value.nil?

    @said[:version] << value
  end

  def livecheck(&block)
    inner = Stanzas.new
    inner.instance_eval(&block)
    @said[:livecheck] << inner.said
  end

  def respond_to_missing?(name, _all = false) = KNOWN.include?(name)

  def method_missing(name, *values, **options)
    raise NoMethodError, "no stanza #{name}" unless KNOWN.include?(name)

    values << options unless options.empty?
    @said[name].concat(values)
  end
end

def cask(token, &block)
  stanzas = Stanzas.new
  stanzas.instance_eval(&block)
  puts JSON.generate({ token: token }.merge(stanzas.said))
end

load ARGV.fetch(0)
