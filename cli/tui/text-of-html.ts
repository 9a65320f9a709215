const ENTITIES: Record<string, string> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: " ",
  copy: "©",
  hellip: "…",
  mdash: "—",
  ndash: "–",
  rsquo: "’",
  lsquo: "‘",
  rdquo: "”",
  ldquo: "“",
  euro: "€",
}

const BLOCKS = "p,div,h1,h2,h3,h4,h5,h6,table,tr,ul,ol,blockquote,section,header,footer"

/** What a reader would see of a mail: blocks on lines of their own, links with where they lead. */
export function textOfHtml(html: string): string {
  const seen: string[] = []
  let hidden = 0
  new HTMLRewriter()
    .on("script,style,title", {
      element(element) {
        hidden += 1
        element.onEndTag(() => {
          hidden -= 1
        })
      },
    })
    .on(BLOCKS, {
      element(block) {
        seen.push("\n")
        block.onEndTag(() => void seen.push("\n"))
      },
    })
    .on("br,hr", { element: () => void seen.push("\n") })
    .on("li", { element: () => void seen.push("\n- ") })
    .on("td,th", { element: () => void seen.push("  ") })
    .on("a[href]", { element: (link) => linked(link, seen) })
    .onDocument({
      text({ text }) {
        if (hidden === 0) seen.push(text.replaceAll(/\s+/g, " "))
      },
    })
    .transform(html)
  const lines = decoded(seen.join("")).split("\n")
  return lines
    .map((line) => line.trim())
    .join("\n")
    .replaceAll(/\n{3,}/g, "\n\n")
    .trim()
}

function linked(link: HTMLRewriterTypes.Element, seen: string[]): void {
  const target = link.getAttribute("href") ?? ""
  const from = seen.length
  link.onEndTag(() => {
    const words = seen.slice(from).join("").trim()
    if (target !== "" && words !== target) seen.push(` (${target})`)
  })
}

const decoded = (text: string): string =>
  text.replaceAll(/&(#x[\da-f]+|#\d+|\w+);/gi, (whole, name: string) => {
    if (!name.startsWith("#")) return ENTITIES[name.toLowerCase()] ?? whole
    const code = /^#x/i.test(name) ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1))
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole
  })
