import caniemail from "caniemail/caniemail.json"

/** What mail programs show, as the bundler writes it into the program: this file itself is no part of it. */
export interface SupportTable {
  /** `Gmail (Android)`. */
  programs: string[]
  features: SupportRow[]
}

/** How a feature is called, by which names of `lib/mail-features` it shows, and a letter a program. */
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

const each = (kind: string, ...words: string[]) => words.map((word) => `${kind} ${word}`)

const sides = (name: string) => each("property", `${name}-start`, `${name}-end`)

/** Features whose title does not say by what they show. None: every mail has it, or nothing shows it. */
const NAMES: Record<string, string[]> = {
  "html-base": ["element base"],
  "html-address": ["element address"],
  "html-h1-h6": each("element", "h1", "h2", "h3", "h4", "h5", "h6"),
  "html-image-maps": ["element map"],
  "html-lists": each("element", "ul", "ol", "dl"),
  "html-semantics": each(
    "element",
    "article",
    "aside",
    "figure",
    "footer",
    "header",
    "main",
    "nav",
  ),
  "html-srcset": each("attribute", "srcset", "sizes"),
  "html-svg": ["element svg"],
  "html-body": [],
  "css-at-media-device-pixel-ratio": each("media", "-webkit-min-device-pixel-ratio"),
  "css-at-media-hover": each("media", "hover", "any-hover"),
  "css-at-media-orientation": ["media orientation"],
  "css-at-media-prefers-color-scheme": ["media prefers-color-scheme"],
  "css-at-media-prefers-reduced-motion": ["media prefers-reduced-motion"],
  "css-block-inline-size": each("property", "block-size", "inline-size"),
  "css-border-inline-block": each("property", "border-inline", "border-block"),
  "css-border-radius-logical": each(
    "property",
    "border-start-start-radius",
    "border-end-end-radius",
  ),
  "css-column-layout-properties": each("property", "columns", "column-rule", "column-width"),
  "css-display-flex": each("value", "display=flex", "display=inline-flex"),
  "css-display-grid": each("value", "display=grid", "display=inline-grid"),
  "css-display-none": ["value display=none"],
  "css-flex-direction": each("value", "flex-direction=column", "flex-direction=column-reverse"),
  "css-flex-wrap": ["value flex-wrap=wrap"],
  "css-gap": each("property", "gap", "column-gap", "row-gap"),
  "css-grid-template": each("property", "grid-template-columns", "grid-template-rows"),
  "css-important": ["word !important"],
  "css-intrinsic-size": each("word", "fit-content", "min-content", "max-content"),
  "css-left-right-top-bottom": each("property", "left", "right", "top", "bottom"),
  "css-margin-block-start-end": sides("margin-block"),
  "css-margin-inline-block": each("property", "margin-inline", "margin-block"),
  "css-margin-inline-start-end": sides("margin-inline"),
  "css-padding-block-start-end": sides("padding-block"),
  "css-padding-inline-block": each("property", "padding-inline", "padding-block"),
  "css-padding-inline-start-end": sides("padding-inline"),
  "css-modern-color": each("function", "lch", "oklch", "lab", "oklab"),
  "css-pseudo-class-lang": ["pseudo lang"],
  "css-scroll-snap": ["property scroll-snap-type"],
  "css-selector-adjacent-sibling": ["selector +"],
  "css-selector-attribute": ["selector ["],
  "css-selector-child": ["selector >"],
  "css-selector-general-sibling": ["selector ~"],
  "css-selector-universal": ["selector *"],
  "css-sytem-ui": each("word", "system-ui", "ui-serif", "ui-sans-serif", "ui-monospace"),
  "css-unit-calc": ["function calc"],
  "css-unit-initial": ["word initial"],
  "css-variables": ["function var"],
}

/** What most titles are, and the kind of name that they stand for. */
const TITLES: [prefix: string, form: RegExp, kind: string][] = [
  ["html-", /^<(\w+)> element$/, "element"],
  ["html-", /^<input type="(\w+)"> element$/, "input"],
  ["html-", /^([\w-]+) attribute$/, "attribute"],
  ["css-", /^::?([a-z-]+)(?:\(\))?$/, "pseudo"],
  ["css-", /^([a-z-]+)\(\)$/, "function"],
  ["css-", /^(%|\w+) unit$/, "unit"],
  ["css-", /^@([\w-]+)$/, "at"],
  ["css-", /^([a-z-]+)(?: property| shorthand| CSS property)?\s*$/, "property"],
]

function namesOf(slug: string, title: string): string[] {
  const known = NAMES[slug]
  if (known) return known
  const [, image] = /^image-(\w+)$/.exec(slug) ?? []
  if (image !== undefined) return [`image ${image}`]
  for (const [prefix, form, kind] of TITLES) {
    const [, word] = (slug.startsWith(prefix) && form.exec(title)) || []
    if (word !== undefined) return [`${kind} ${word}`]
  }
  return []
}
