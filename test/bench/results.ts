import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { cpus, loadavg, release } from "node:os"
import { join } from "node:path"
import { root } from "../harness/migrations"
import { type Bench, median, type Report, type Series, show } from "./bench"

const FILE = join(root, "test/bench/results.md")

const HEAD = `# Benchmark results

Written by \`bun run bench\`. Each benchmark measures in turn the limit, ours and a peer; ratios are
medians of the rounds' own ratios. On a small and busy machine only a ratio of one run means anything.
`

export interface Circumstances {
  rounds: number
  load_before: number
}

/** Replaces the section of this benchmark; the others stay as their own runs left them. */
export function write(bench: Bench, text: string) {
  const old = existsSync(FILE) ? readFileSync(FILE, "utf8") : HEAD
  const sections = new Map(
    old
      .split(/^(?=## )/m)
      .slice(1)
      .map((section) => [nameOf(section), section.trimEnd()]),
  )
  sections.set(bench.name, text.trimEnd())
  writeFileSync(FILE, `${[HEAD.trimEnd(), ...sections.values()].join("\n\n")}\n`)
}

const nameOf = (section: string) => /^## (\S+):/.exec(section)?.[1] ?? section

export function render(bench: Bench, report: Report, { rounds, load_before }: Circumstances) {
  const most = Math.max(...report.series.map(({ values }) => values.length)) // a long one is cut short
  const times = most === 1 ? "1 round" : `${Math.min(most, rounds)} rounds`
  const load = `load ${load_before.toFixed(1)} before, ${(loadavg()[0] ?? 0).toFixed(1)} after`
  const when = `${new Date().toISOString().slice(0, 16).replace("T", " ")} UTC`
  const [cpu] = cpus()
  const machine = `${cpus().length} × ${cpu?.model.trim() ?? "?"}, ${process.platform} ${release()}`
  return [
    `## ${bench.name}: ${bench.title}`,
    "",
    `${when} · commit ${commit()} · ${load} · ${times} · Bun ${Bun.version} · ${machine}`,
    "",
    "| Measured | Median | Lowest to highest |",
    "|---|---|---|",
    ...report.series.filter(({ values }) => values.length > 0).map(asRow),
    "",
    "| Demanded | Measured | Target | |",
    "|---|---|---|---|",
    ...report.verdicts.map(
      ({ what, shown, target, met }) => `| ${what} | ${shown} | ${target} | ${verdict(met)} |`,
    ),
    "",
    ...report.notes.map((note) => `- ${note}`),
    "",
  ].join("\n")
}

const verdict = (met: boolean) => (met ? "met" : "**missed**")

const asRow = ({ name, unit, values }: Series) =>
  `| ${name} | ${show(median(values))} ${unit} | ${show(Math.min(...values))} to ${show(Math.max(...values))} |`

function commit(): string {
  const git = (...args: string[]) =>
    Bun.spawnSync({ cmd: ["git", ...args], cwd: root })
      .stdout.toString()
      .trim()
  const id = git("rev-parse", "--short", "HEAD")
  const measured = ["src", "cli", "migrations", "package.json", "test/bench"]
  const changes = git("status", "--porcelain", "--", ...measured, ":!test/bench/results.md")
  return changes ? `${id} with uncommitted changes` : id || "unknown"
}
