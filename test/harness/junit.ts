export interface Failure {
  file: string
  name: string
  message: string
}

/** How long a test took, or a file with its hooks; the name of a file is empty. */
export interface Taken {
  file: string
  name: string
  seconds: number
}

export interface Totals {
  passed: number
  failures: Failure[]
  skipped: number
  tests: Taken[]
  files: Taken[]
}

/** Reads the report of `bun test --reporter=junit`. Skipped tests are neither passed nor failed. */
export function readJunit(xml: string): Totals {
  const totals: Totals = { passed: 0, failures: [], skipped: 0, tests: [], files: filesOf(xml) }
  for (const [, attributes = "", body = ""] of xml.matchAll(TESTCASE)) {
    totals.tests.push({ ...named(attributes), seconds: Number(attribute(attributes, "time")) })
    const failure = /<(?:failure|error)\b([^>]*)>?/.exec(body)
    const message = attribute(failure?.[1] ?? "", "message").trim()
    if (failure) totals.failures.push({ ...named(attributes), message })
    else if (/<skipped\b/.test(body)) totals.skipped++
    else totals.passed++
  }
  return totals
}

/** A case with nothing to say is one empty element; `>` inside an attribute arrives escaped. */
const TESTCASE = /<testcase\b([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g

function named(attributes: string) {
  const names = [attribute(attributes, "classname"), attribute(attributes, "name")]
  return { file: attribute(attributes, "file"), name: names.filter(Boolean).join(" > ") }
}

/** Suites within a file have its path, too, and a name of their own. */
function filesOf(xml: string): Taken[] {
  return [...xml.matchAll(/<testsuite\b([^>]*)>/g)].flatMap(([, attributes = ""]) => {
    const file = attribute(attributes, "file")
    if (attribute(attributes, "name") !== file) return []
    return { file, name: "", seconds: Number(attribute(attributes, "time")) }
  })
}

function attribute(text: string, name: string): string {
  const value = new RegExp(`\\b${name}="([^"]*)"`).exec(text)?.[1] ?? ""
  return value
    .replaceAll("&#10;", "\n")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&apos;", "'")
    .replaceAll("&amp;", "&")
}
