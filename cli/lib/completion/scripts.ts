import bash from "./belfry.bash" with { type: "text" }
import fish from "./belfry.fish" with { type: "text" }
import zsh from "./belfry.zsh" with { type: "text" }

/** The names of the shells, as `belfry completion` takes them. */
export const shells = ["bash", "zsh", "fish"] as const

/**
 * What each shell loads. The scripts know nothing of the commands: they hand over what was typed,
 * and `belfry __complete` answers one candidate a line, or `:files` where a file belongs. Bash splits
 * words at `:` and `=` too, so it hands over the whole line.
 */
export const scripts: Record<(typeof shells)[number], string> = { bash, zsh, fish }
