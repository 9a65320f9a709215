import { expect, test } from "bun:test"
import { linkSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { codeBlocks } from "../docs/code-blocks"
import { upgradeBox } from "../faults/upgrade-box"
import { readJunit } from "../harness/junit"
import { NEXT_VERSION, nextRelease } from "../harness/next-release"
import { sizes } from "../harness/sizes"

const ARCHIVE = "belfry-0.2.0-linux-x64.tar.gz"

/** The key is part of a release; the binary of the tests has none. */
const PRELUDE = `
set -e
belfry() {
  if [ "$1" = upgrade ]; then "$PROGRAM" "$@" --public-key "$PUBLIC_KEY"; else "$PROGRAM" "$@"; fi
}
`

test.skipIf(sizes.run_guides > 1)(
  "the commands of docs/upgrading.md upgrade a running server",
  async () => {
    const release = await nextRelease()
    await using box = await upgradeBox({ release })
    for (const end of ["", ".minisig"])
      linkSync(release.archive + end, join(box.folder, ARCHIVE + end))
    const commands = codeBlocks("docs/upgrading.md").filter(({ language }) => language === "sh")
    expect(commands.length).toBeGreaterThan(3)
    // The check without migrations comes last on the page, but it is of a version that is not there yet.
    const [version, check, ...rest] = commands.map(({ code }) => code)
    const isCheck = (code: string) => code.includes("--no-migrate")
    const ordered = [
      version,
      ...rest.filter(isCheck),
      check,
      ...rest.filter((code) => !isCheck(code)),
    ]
    const script = ordered.join("\n").replaceAll("/var/lib/belfry", "$DATA_DIR")
    writeFileSync(join(box.folder, "script.sh"), PRELUDE + script)
    const child = Bun.spawn(["bash", "script.sh"], {
      cwd: box.folder,
      env: {
        ...box.env,
        PROGRAM: box.program,
        PUBLIC_KEY: release.public_key,
        DATA_DIR: box.data_dir,
      },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    })
    const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text()])
    expect({ code: await child.exited, err: err.replace(/^\{"error".*\n/, "") }).toEqual({
      code: 0,
      err: "",
    })
    expect(out).toContain('"done":true')
    expect(await box.served()).toBe(NEXT_VERSION)
    const report = readJunit(readFileSync(join(box.folder, "smoke.xml"), "utf8"))
    expect(report.failures).toEqual([])
    expect(report.passed).toBeGreaterThan(6)
  },
)
