import type { Package } from "./licences"

interface SbomOptions {
  name: string
  version: string
  licence: string
  /** ISO 8601. */
  at: string
  runtime_version: string
  packages: readonly Package[]
}

/** A software bill of materials in the form of CycloneDX 1.6: what is in the binary, and its licences. */
export function sbom({
  name,
  version,
  licence,
  at,
  runtime_version,
  packages,
}: SbomOptions): string {
  const runtime = { name: "bun", version: runtime_version, licence: "MIT" }
  const components = [runtime, ...packages].map((one) => ({
    type: one === runtime ? "platform" : "library",
    "bom-ref": purl(one),
    name: one.name,
    version: one.version,
    purl: purl(one),
    licenses: [{ expression: one.licence }],
  }))
  const whole = {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: {
      timestamp: at,
      component: {
        type: "application",
        "bom-ref": `pkg:generic/${name}@${version}`,
        name,
        version,
        licenses: [{ expression: licence }],
      },
    },
    components,
    dependencies: [
      { ref: `pkg:generic/${name}@${version}`, dependsOn: components.map((one) => one["bom-ref"]) },
    ],
  }
  return `${JSON.stringify(whole, null, 2)}\n`
}

/** `pkg:npm/%40scope/name@1.0.0` (package-url specification, "npm"). */
const purl = ({ name, version }: Pick<Package, "name" | "version">): string =>
  `pkg:npm/${name.replace(/^@/, "%40")}@${version}`
