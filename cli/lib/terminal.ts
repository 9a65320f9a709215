/** What the three streams are, and whether colour is welcome. */
export interface Terminal {
  in: boolean
  out: boolean
  err: boolean
  moves: boolean
  width: number
  colour: boolean
}

type Environment = Record<string, string | undefined>

const DEFAULT_WIDTH = 100

/** A table in a file or a pipe is not cut. */
const UNLIMITED = 100_000

export function readTerminal(environment: Environment, no_colour: boolean): Terminal {
  const out = process.stdout.isTTY === true
  return {
    in: process.stdin.isTTY === true,
    out,
    err: process.stderr.isTTY === true,
    moves: environment.TERM !== "dumb",
    width: process.stdout.columns || (out ? DEFAULT_WIDTH : UNLIMITED),
    colour: wantsColour(environment, out, no_colour),
  }
}

/** `--no-color`, `NO_COLOR` and `TERM=dumb` win; `CLICOLOR_FORCE` colours a pipe too. */
export function wantsColour(
  environment: Environment,
  is_terminal: boolean,
  no_colour: boolean,
): boolean {
  if (no_colour || environment.NO_COLOR || environment.BELFRY_NO_COLOR) return false
  if (environment.CLICOLOR_FORCE && environment.CLICOLOR_FORCE !== "0") return true
  return is_terminal && environment.TERM !== "dumb" && environment.CLICOLOR !== "0"
}

// Escapes, the rest of C0 and C1, and the marks that turn the direction of text around.
const controls = /[\p{Cc}\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu
const controlsButBreaks = /(?![\n\t])[\p{Cc}\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu

/** One harmless line: a subject may carry terminal escapes. */
export const cleanLine = (text: string): string =>
  Bun.stripANSI(text)
    .replaceAll(/[\r\n\t]+/g, " ")
    .replaceAll(controls, "")

/** Harmless text that keeps its line breaks and tabs: a mail body. */
export const cleanText = (text: string): string =>
  Bun.stripANSI(text).replaceAll(/\r\n?/g, "\n").replaceAll(controlsButBreaks, "")

const codes = { bold: 1, dim: 2, inverse: 7, red: 31, green: 32, yellow: 33, cyan: 36 } as const

export type Paint = Record<keyof typeof codes, (text: string) => string>

/** Colour never carries meaning alone: each coloured word says the same without it. */
export function painter(colour: boolean): Paint {
  const brush = (code: number) => (text: string) =>
    colour && text !== "" ? `\u001b[${code}m${text}\u001b[0m` : text
  const entries = Object.entries(codes).map(([name, code]) => [name, brush(code)])
  return Object.fromEntries(entries) as Paint
}
