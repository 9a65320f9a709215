import type { ApiRequest } from "../../client/client"
import { curlOf } from "../curl"
import { CodeBlock } from "./code-block"

interface CommandsProps {
  /** The same action on the command line. */
  belfry: string
  /** The same action over HTTP. */
  request: ApiRequest
}

/** How to do the same from a terminal and from a program. */
export const Commands = ({ belfry, request }: CommandsProps) => (
  <details class="commands">
    <summary>From a terminal or a program</summary>
    <CodeBlock label="belfry" text={belfry} />
    <CodeBlock label="curl" text={curlOf(request, location.origin)} />
  </details>
)
