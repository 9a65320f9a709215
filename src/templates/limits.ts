/** Bytes of one Handlebars text. */
export const SOURCE_BYTES = 262_144

/** Bytes of all that one rendering gives. */
export const OUTPUT_BYTES = 2_097_152

/** Processor time that a thread may take for one rendering: on a busy machine it waits without a fault of the template. */
export const DEADLINE_MS = 500
export const DEADLINE = { deadline_ms: DEADLINE_MS, only_works: true }

/** After this its thread is ended: it hangs in a place that asks for no time. */
export const KILL_MS = DEADLINE_MS + 100

/** Processor time of a thread for one rendering. What takes more is kept apart from other renderings. */
export const LONG_MS = 50

/** A name is part of file names, too. */
export const TEMPLATE_NAME = "^[a-z0-9][a-z0-9_.-]{0,99}$"
