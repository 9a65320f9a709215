import type { Command } from "commander"

/** What a command line says, before commander reads it. */
export interface Reading {
  /** The deepest command that the words name. */
  command: Command
  /** Its arguments, as far as they are no flags and no values of flags. */
  positional: string[]
  /** Where a `--json` stands before a word that may be its fields. */
  candidates: number[]
  /** Where a bare `--json` stands. */
  bare: number[]
}

/** Reads the words in the order in which commander would: each flag by the command it stands at. */
export function readWords(words: readonly string[], program: Command): Reading {
  const reading: Reading = { command: program, positional: [], candidates: [], bare: [] }
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? ""
    if (word === "--") {
      reading.positional.push(...words.slice(at + 1))
      break
    }
    if (word === "--json") {
      reading.bare.push(at)
      if (mayBeFields(words[at + 1], reading.command)) reading.candidates.push(at++)
    } else if (word.startsWith("-") && word !== "-") {
      if (takesNext(reading.command, word)) at += 1
    } else {
      const child = reading.positional.length === 0 ? childOf(reading.command, word) : undefined
      if (child) reading.command = child
      else reading.positional.push(word)
    }
  }
  return reading
}

export const childOf = (command: Command, name: string): Command | undefined =>
  command.commands.find((child) => child.name() === name || child.aliases().includes(name))

/** Whether the flag has a value, and the value is the next word. */
export function takesNext(command: Command, word: string): boolean {
  const option = command.options.find(({ long, short }) => long === word || short === word)
  return option?.required === true
}

/** Lower case names with commas: neither an id, nor an address, nor a file, nor the next command. */
function mayBeFields(word: string | undefined, command: Command): boolean {
  if (word === undefined || childOf(command, word)) return false
  return /^[a-z][a-z_]*(\.[a-z_]+)*(,[a-z][a-z_]*(\.[a-z_]+)*)*,?$/.test(word)
}

/**
 * `--json id,status` becomes `--json=id,status`, unless the command needs that word itself:
 * `events get --json evt` lacks its argument otherwise. A bare `--json` never takes the next word.
 */
export function normalized(words: readonly string[], program: Command): string[] {
  const { command, positional, candidates, bare } = readWords(words, program)
  const needed = command.registeredArguments.filter(({ required }) => required).length
  const missing = Math.max(0, needed - positional.length)
  // The last words go back to the command, because fields usually stand first.
  const fields = new Set(missing > 0 ? candidates.slice(0, -missing) : candidates)
  return words.flatMap((word, at) => {
    if (fields.has(at)) return [`--json=${words[at + 1]}`]
    if (fields.has(at - 1)) return []
    return [bare.includes(at) ? "--json=" : word]
  })
}
