import caniemail from "caniemail/caniemail.json"

/** What mail programs show, as the bundler writes it into the program: this file itself is no part of it. */
interface SupportTable {
  /** `Gmail (Android)`. */
  programs: string[]
  features: SupportRow[]
}

/** How a feature is called, by which names of `featuresIn` it shows, and a letter a program. */
type SupportRow = [title: string, names: string[], support: string]

/** A program of which less was tested says too little. */
const LEAST_TESTED = 250

/**
 * The table of caniemail.com, small: of each feature one letter a program, `y` for yes, `a` for almost, `n`
 * for no and `u` for unknown. Called as a macro, when the program is built.
 */
export function supportTable(): SupportTable {
  const tested = new Map<string, number>()
  for (const feature of caniemail.data) {
    for (const program of Object.keys(latestOf(feature.stats))) {
      tested.set(program, (tested.get(program) ?? 0) + 1)
    }
  }
  const programs = [...tested.keys()].filter((name) => (tested.get(name) ?? 0) >= LEAST_TESTED)
  const features = caniemail.data.flatMap(({ slug, title, stats }): SupportRow[] => {
    const names = namesOf(slug, title)
    const latest = latestOf(stats)
    const support = programs.map((program) => latest[program] ?? "u").join("")
    return names.length > 0 && /[an]/.test(support) ? [[title.trim(), names, support]] : []
  })
  return { programs: programs.map(nameOf), features }
}

type Stats = Record<string, Record<string, Record<string, string>>>

/** The letter of the latest version that was tested, by `family.platform`. */
function latestOf(stats: object): Record<string, string> {
  const found: Record<string, string> = {}
  for (const [family, platforms] of Object.entries(stats as Stats)) {
    for (const [platform, versions] of Object.entries(platforms)) {
      const order = Object.keys(versions).sort((a, b) =>
        a.localeCompare(b, "en", { numeric: true }),
      )
      const letter = versions[order.at(-1) ?? ""]?.[0]
      found[`${family}.${platform}`] = letter !== undefined && "yan".includes(letter) ? letter : "u"
    }
  }
  return found
}

const FAMILIES: Record<string, string> = caniemail.nicenames.family
const PLATFORMS: Record<string, string> = {
  ...caniemail.nicenames.platform,
  "desktop-webmail": "webmail",
  "mobile-webmail": "mobile webmail",
}

function nameOf(program: string): string {
  const [family = "", platform = ""] = program.split(".")
  if (platform === "outlook-com") return "Outlook.com"
  return `${FAMILIES[family] ?? family} (${PLATFORMS[platform] ?? platform})`
}

/** Features whose title does not say by what they show. None: every mail has it, or nothing shows it. */
const NAMES: Record<string, string[]> = {
  "html-address": ["element address"],
  "html-body": [],
  "html-h1-h6": ["element h1", "element h2", "element h3", "element h4"],
  "html-image-maps": ["element map"],
  "html-semantics": ["element article", "element aside", "element footer", "element header"],
  "html-srcset": ["attribute srcset", "attribute sizes"],
  "css-at-media-device-pixel-ratio": ["media -webkit-min-device-pixel-ratio"],
  "css-border-radius-logical": ["property border-start-start-radius"],
  "css-column-layout-properties": ["property columns", "property column-width"],
  "css-grid-template": ["property grid-template-columns", "property grid-template-rows"],
  "css-important": ["word !important"],
  "css-intrinsic-size": ["word fit-content", "word min-content", "word max-content"],
  "css-pseudo-class-lang": ["pseudo lang"],
  "css-scroll-snap": ["property scroll-snap-type"],
  "css-selector-adjacent-sibling": ["selector +"],
  "css-selector-attribute": ["selector ["],
  "css-selector-child": ["selector >"],
  "css-selector-general-sibling": ["selector ~"],
  "css-selector-universal": ["selector *"],
  "css-sytem-ui": ["word system-ui", "word ui-serif", "word ui-sans-serif", "word ui-monospace"],
  "css-unit-initial": ["word initial"],
  "css-variables": ["function var"],
}

/** One of a list of properties. */
const PROPERTY =
  /(?<=^|, | & )(?!.* properties$)([a-z-]+)(?=, | & |(?: CSS)? property| shorthand|\s*$)/g

/** What other titles are: the first form that a title has tells the kind of all names in it. */
const TITLES: [prefix: string, form: RegExp, nameOf: (...words: string[]) => string][] = [
  ["html-", /<input type="(\w+)">/g, (type) => `input ${type}`],
  ["html-", /<(\w+)>/g, (name) => `element ${name}`],
  ["html-", /^([\w-]+) attribute$/g, (name) => `attribute ${name}`],
  ["css-", /^::?([a-z-]+)(?:\(\))?$/g, (name) => `pseudo ${name}`],
  ["css-", /@media \(([\w-]+)\)/g, (name) => `media ${name}`],
  ["css-", /^@([\w-]+)$/g, (name) => `at ${name}`],
  ["css-", /([a-z-]+)\(\)/g, (name) => `function ${name}`],
  ["css-", /^(%|\w+) unit$/g, (name) => `unit ${name}`],
  ["css-", /^([a-z-]+): ?([a-z-]+)$/g, (name, value) => `value ${name}=${value}`],
  ["css-", PROPERTY, (name) => `property ${name}`],
]

function namesOf(slug: string, title: string): string[] {
  const known = NAMES[slug]
  if (known) return known
  const image = /^image-(\w+)$/.exec(slug)?.[1]
  if (image !== undefined) return [`image ${image}`]
  const fitting = TITLES.find(([prefix, form]) => slug.startsWith(prefix) && title.match(form))
  if (!fitting) return []
  const [, form, nameOf] = fitting
  return [...title.matchAll(form)].map(([, ...words]) => nameOf(...words))
}
