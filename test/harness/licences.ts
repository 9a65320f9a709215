import { existsSync, readdirSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"

/** Licences that let the binary be handed on under Apache-2.0 without further duties. */
const PERMISSIVE = new Set([
  "0BSD",
  "Apache-2.0",
  "BlueOak-1.0.0",
  "BSD",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "CC0-1.0",
  "ISC",
  "MIT",
  "MIT-0",
  "MPL-2.0",
  "Python-2.0",
  "Unlicense",
  "Zlib",
])

export interface Package {
  name: string
  version: string
  licence: string
  permissive: boolean
}

/**
 * Every package that `dependencies` of the manifest in `root` brings along, at any depth, as
 * installed. Throws where one is not installed.
 */
export function productionTree(root: string): Package[] {
  const seen = new Map<string, Package>()
  const wanted = dependenciesOf(root).map((name) => ({ name, from: root }))
  for (let next = wanted.pop(); next; next = wanted.pop()) {
    const folder = find(next.name, next.from)
    if (!folder || seen.has(folder)) continue
    seen.set(folder, describe(folder))
    wanted.push(...dependenciesOf(folder).map((name) => ({ name, from: folder })))
  }
  return [...seen.values()].sort((a, b) => a.name.localeCompare(b.name))
}

const manifest = (folder: string) => JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))

const dependenciesOf = (folder: string): string[] =>
  Object.keys(manifest(folder).dependencies ?? {})

/** As the runtime resolves it: the nearest node_modules above the one who asks. */
function find(name: string, from: string): string {
  for (let folder = from; ; folder = dirname(folder)) {
    const candidate = join(folder, "node_modules", name)
    if (existsSync(join(candidate, "package.json"))) return candidate
    if (folder === dirname(folder)) throw new Error(`${name} is not installed`)
  }
}

function describe(folder: string): Package {
  const { name, version, license, licenses } = manifest(folder)
  const declared = license ?? licenses?.[0]
  const licence = (typeof declared === "string" ? declared : declared?.type) ?? fromFile(folder)
  return { name, version, licence, permissive: isPermissive(licence) }
}

/** A package without the field still carries the text. */
function fromFile(folder: string): string {
  const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name))
  const text = file ? readFileSync(join(folder, file), "utf8") : ""
  if (/Permission is hereby granted, free of charge/.test(text)) return "MIT"
  if (/Apache License\s+Version 2\.0/.test(text)) return "Apache-2.0"
  return "unknown"
}

/** An SPDX expression: one good arm of an OR is enough, an AND needs all of its parts. */
export function isPermissive(expression: string): boolean {
  const arms = expression.replaceAll(/[()]/g, "").split(/ OR /i)
  return arms.some((arm) => arm.split(/ AND /i).every((id) => PERMISSIVE.has(id.trim())))
}
