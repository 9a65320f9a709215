/** The names that a page may set, each beside what holds without it. Texts have 4.5:1 on all grounds (WCAG AA). */
const COLOURS = `
--paper:var(--belfry-background,light-dark(#fff,#12151b));
--side:var(--belfry-hover,light-dark(#f5f6f9,#1c212a));
--ink:var(--belfry-text,light-dark(#1b2130,#e6e9ef));
--soft:var(--belfry-muted,light-dark(#566073,#a2acbd));
--line:var(--belfry-line,light-dark(#dfe3ea,#2c3340));
--edge:var(--belfry-edge,light-dark(#838c9d,#727c8e));
--accent:var(--belfry-accent,light-dark(#2457c5,#8ab0ff));
--on-accent:var(--belfry-on-accent,light-dark(#fff,#0b1220));
--bad:var(--belfry-danger,light-dark(#b3261e,#ff8a80));
--on-bad:var(--belfry-on-danger,light-dark(#fff,#2b0906));
--round:var(--belfry-radius,8px);`

/** Sizes are in `em`: they follow the letters, whatever the page does with its root. */
export const INBOX_STYLE = `
:host{all:initial;display:inline-block;color-scheme:light dark;${COLOURS}}
:host([theme=light]){color-scheme:light}
:host([theme=dark]){color-scheme:dark}
:host([layout=panel]){display:block}
:host([hidden]),[hidden]{display:none!important}
*{box-sizing:border-box}
.root{font:.9375em/1.45 var(--belfry-font,system-ui,-apple-system,"Segoe UI",Roboto,sans-serif);color:var(--ink)}
button,select{font:inherit;color:inherit}
button,a,select,label{cursor:pointer}
button:disabled{cursor:default}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
.unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.line{display:block;width:1.4em;height:1.4em;fill:none;stroke:currentColor;stroke-width:1.8;stroke-linecap:round;stroke-linejoin:round}
.of-more{stroke-width:3}
.root:dir(rtl) .of-back{transform:scaleX(-1)}
.icon,.bell{display:grid;place-items:center;flex:none;width:2.4em;height:2.4em;padding:0;border:0;border-radius:var(--round);background:none}
.icon:hover:not(:disabled),.bell:hover{background:var(--side)}
.icon{color:var(--soft)}
.icon:disabled{opacity:.45}
.bell{position:relative;width:2.8em;height:2.8em}
.bell .line{width:1.75em;height:1.75em}
.badge{position:absolute;inset-block-start:.15em;inset-inline-start:50%;min-width:1.6em;padding:0 .35em;border-radius:1em;background:var(--bad);color:var(--on-bad);font-size:.72em;font-weight:700;line-height:1.6;text-align:center}
.panel{flex-direction:column;width:min(26em,100vw - 16px);max-height:38em;margin:0;padding:0;overflow:hidden;border:1px solid var(--line);border-radius:calc(var(--round)*1.5);background:var(--paper);color:var(--ink);box-shadow:0 8px 30px light-dark(#1b213033,#000a)}
.panel:popover-open,.panel:not([popover]){display:flex}
.panel:not([popover]){width:auto;max-height:none;height:100%;box-shadow:none}
.head{display:flex;align-items:center;gap:.15em;padding-block:.55em;padding-inline:1em .55em;border-block-end:1px solid var(--line)}
.head .icon:first-child{margin-inline:-.6em .2em}
h2{margin:0;font-size:1.1em;line-height:1.3;overflow-wrap:anywhere}
.space{flex:1}
select{max-width:8.5em;min-height:2em;margin-inline-start:.5em;padding:.1em .3em;border:1px solid var(--edge);border-radius:var(--round);background:var(--paper);text-overflow:ellipsis}
.tabs{display:flex;flex:none;gap:.3em;padding:.3em .7em 0;overflow-x:auto;border-block-end:1px solid var(--line);scrollbar-width:thin}
.tab{padding:.4em .6em;border:0;border-block-end:3px solid transparent;background:none;color:var(--soft);white-space:nowrap}
.tab[aria-selected=true]{border-color:var(--accent);color:var(--ink);font-weight:600}
.tab:focus-visible{outline-offset:-2px}
.count{margin-inline-start:.4em;padding:0 .4em;border-radius:1em;background:var(--side);color:var(--ink);font-size:.85em;font-weight:600}
.note{margin:0;padding:.5em 1em;border-block-end:1px solid var(--line);background:var(--side);color:var(--ink);font-size:.9em}
.note.bad{border-inline-start:4px solid var(--bad)}
.body{flex:1;min-height:min(12em,30vh);overflow:auto;overscroll-behavior:contain}
.body:focus-visible,.open:focus-visible,.menu button:focus-visible{outline-offset:-2px}
.quiet{margin:0;padding:4em 1.5em;color:var(--soft);text-align:center}
ul{margin:0;padding:0;list-style:none}
.row{display:grid;grid-template-columns:minmax(0,1fr) auto;border-block-end:1px solid var(--line)}
.row:hover{background:var(--side)}
.open{display:flex;gap:.7em;width:100%;padding-block:.8em .5em;padding-inline:1em .4em;border:0;background:none;color:inherit;text-align:start;text-decoration:none}
.dot{flex:none;width:.6em;height:.6em;margin-block-start:.42em;border-radius:50%}
.unread .dot{background:var(--accent)}
.face{flex:none;width:2.3em;height:2.3em;border-radius:var(--round);object-fit:cover}
.text{display:grid;gap:.15em;min-width:0;flex:1}
.title,.words,.facts,legend{overflow-wrap:anywhere}
.unread .title{font-weight:650}
.words{color:var(--soft);white-space:pre-line}
.row:not(.whole) .words{display:-webkit-box;overflow:hidden;-webkit-box-orient:vertical;-webkit-line-clamp:4}
.picture{display:block;max-width:100%;max-height:10em;margin-block:.3em;border-radius:var(--round);object-fit:cover}
.facts{display:flex;flex-wrap:wrap;gap:.1em .6em;align-items:center;color:var(--soft);font-size:.87em}
.mark{padding:0 .45em;border:1px solid currentColor;border-radius:1em;color:var(--ink);font-weight:600}
.mark.urgent{color:var(--bad)}
.row>.icon{margin:.4em .4em 0}
.actions{display:flex;flex-wrap:wrap;grid-column:1/-1;gap:.5em;padding-block:.2em .9em;padding-inline:2.3em 1em}
.row.faced .actions{padding-inline-start:5.3em}
.act{min-height:2.1em;max-width:100%;padding:.25em .8em;border:1px solid var(--edge);border-radius:var(--round);background:var(--paper);color:var(--ink);font-size:.93em;font-weight:600;text-decoration:none;overflow-wrap:anywhere}
.act:hover{border-color:currentColor}
.act.primary{border-color:var(--accent);background:var(--accent);color:var(--on-accent)}
.act.danger{border-color:var(--bad);color:var(--bad)}
.act.is-done{padding-inline:0;border-color:transparent;background:none;color:var(--soft)}
.wide{display:block;width:calc(100% - 2em);margin:.8em 1em;text-align:center}
.menu{min-width:13em;margin:0;padding:.3em;border:1px solid var(--line);border-radius:var(--round);background:var(--paper);color:var(--ink);box-shadow:0 8px 30px light-dark(#1b213033,#000a)}
.menu button{display:block;width:100%;padding:.5em .7em;border:0;border-radius:calc(var(--round)*.75);background:none;text-align:start}
.menu button:hover,.menu button:focus-visible{background:var(--side)}
.menu .danger{color:var(--bad)}
.choices{padding:.4em 1em 1em}
fieldset{min-width:0;margin:1em 0 0;padding:0;border:0}
legend{padding:0;font-weight:650}
.choice{margin-block-start:.5em}
.choice legend{color:var(--soft);font-weight:600}
.choice div{display:flex;flex-wrap:wrap;gap:.2em 1.2em}
label.check{display:flex;gap:.5em;align-items:center;min-height:1.9em}
input{flex:none;width:1.15em;height:1.15em;margin:0;accent-color:var(--accent)}
@media(max-width:479px){
.panel[popover]{inset:auto 0 0;width:100%;max-width:none;max-height:min(88dvh,100% - 2em);border-width:1px 0 0;border-end-start-radius:0;border-end-end-radius:0}
.panel::backdrop{background:#0006}
}
@media(forced-colors:active){
.unread .dot{background:Highlight;forced-color-adjust:none}
.badge,.count,.icon,.bell,.act.is-done{border:1px solid}
.tab{border-color:Canvas}
.tab[aria-selected=true]{border-color:Highlight}
}
@media(prefers-reduced-motion:no-preference){
.panel:popover-open,.menu:popover-open{animation:come .12s ease-out}
@keyframes come{from{opacity:0;translate:0 -4px}}
}
`
