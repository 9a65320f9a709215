export interface Failure {
  file: string
  name: string
  message: string
}

export interface Totals {
  passed: number
  failures: Failure[]
  skipped: number
}

/** Reads the report of `bun test --reporter=junit`. Skipped tests are neither passed nor failed. */
export function readJunit(xml: string): Totals {
  const totals: Totals = { passed: 0, failures: [], skipped: 0 }
  for (const [, attributes = "", body = ""] of xml.matchAll(TESTCASE)) {
    const failure = /<(?:failure|error)\b([^>]*)>?/.exec(body)
    if (failure) totals.failures.push(describe(attributes, failure[1] ?? ""))
    else if (/<skipped\b/.test(body)) totals.skipped++
    else totals.passed++
  }
  return totals
}

/** A case with nothing to say is one empty element; `>` inside an attribute arrives escaped. */
const TESTCASE = /<testcase\b([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g

function describe(attributes: string, failure: string): Failure {
  const names = [attribute(attributes, "classname"), attribute(attributes, "name")]
  return {
    file: attribute(attributes, "file"),
    name: names.filter(Boolean).join(" > "),
    message: attribute(failure, "message").trim(),
  }
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
