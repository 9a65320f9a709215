/**
 * The numbers of this process by their names of Prometheus, each value by its labels. No address, id
 * or key may become a label.
 */
const families = new Map<string, Family>()

type Labels = Record<string, string>

interface Family {
  help: string
  type: "counter" | "gauge"
  values: Map<string, number>
}

/**
 * The counter of this name (`belfry_…_total`), which is made at the first call: a number that only rises, from 0 at
 * the start of the process.
 */
export function metricCounter(name: string, help: string) {
  const { values } = familyOf(name, "counter", help)
  return {
    add: (labels: Labels, by: number) =>
      void values.set(shown(labels), (values.get(shown(labels)) ?? 0) + by),
    /** 0 for labels that were never added to. */
    value: (labels: Labels) => values.get(shown(labels)) ?? 0,
  }
}

/** The gauge of this name, which is made at the first call: a number that is set as it is found; nothing before. */
export function metricGauge(name: string, help: string) {
  const { values } = familyOf(name, "gauge", help)
  return { set: (labels: Labels, value: number) => void values.set(shown(labels), value) }
}

function familyOf(name: string, type: Family["type"], help: string): Family {
  const family = families.get(name) ?? { help, type, values: new Map<string, number>() }
  families.set(name, family)
  return family
}

/** All of them in the text format of Prometheus, version 0.0.4. */
export const metricsText = (): string =>
  [...families]
    .flatMap(([name, { help, type, values }]) => [
      `# HELP ${name} ${help}`,
      `# TYPE ${name} ${type}`,
      ...[...values].map(([labels, value]) => `${name}${labels} ${value}`),
    ])
    .map((line) => `${line}\n`)
    .join("")

function shown(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}=${JSON.stringify(value)}`)
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`
}
