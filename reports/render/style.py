"""How pages look: colours for light and dark screens and for paper, all in variables, and nothing that has to be fetched."""

import re
from typing import Final

_LIGHT: Final = (
    "--page:#fff;--panel:#f5f6f8;--ink:#1b2129;--soft:#566170;--rule:#d9dee5;--on:#fff;--good:#1a6b3c;--warn:#9a4a00;"
    "--k0:#2563a8;--k1:#b3490c;--k2:#0f766e;--k3:#8b3a7c;--k4:#7a5c00;--k5:#a1264a;--k6:#4d6b1f;--k7:#5b6470"
)
_DARK: Final = (
    "--page:#12161b;--panel:#1b2128;--ink:#e6e9ed;--soft:#a0abb8;--rule:#343d48;--on:#10151b;--good:#7fd6a0;--warn:#f0a36b;"
    "--k0:#7db4f0;--k1:#f0a36b;--k2:#5ccfc0;--k3:#d99ad0;--k4:#d8bb55;--k5:#f08ba5;--k6:#a9cf6e;--k7:#a7b0bb"
)
"""Words on each of the colours and each of the colours on the page have a contrast of 4.5 or more."""

_RULES: Final = """
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:16px/1.5 system-ui,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main{max-width:880px;margin:0 auto;padding:24px 20px 64px}
@media screen and (min-width:1100px){main{max-width:1040px}}
h1{font-size:30px;line-height:1.2;margin:0 0 4px;overflow-wrap:anywhere}
h2{font-size:20px;margin:44px 0 10px;padding-top:14px;border-top:1px solid var(--rule)}
h3{font-size:16px;margin:24px 0 6px}
article{margin-top:56px;border-top:4px solid var(--rule);padding-top:20px}
article h2{font-size:26px;line-height:1.2;margin:0 0 4px;padding:0;border:0;overflow-wrap:anywhere}
article h3{font-size:20px;margin:44px 0 10px;padding-top:14px;border-top:1px solid var(--rule)}
h4{font-size:16px;margin:24px 0 6px}
a{color:inherit}nav{margin:18px 0}.wide tbody th{white-space:normal;overflow-wrap:anywhere}@media screen{.wide tbody th{min-width:150px}}
.wide table{font-size:14px}.wide th,.wide td{padding-right:10px}.wide td:last-child:not(.n){min-width:180px}
.many td.n{white-space:normal}.many th,.many td{padding-right:8px}@media screen{.many tbody th{min-width:110px}}
p{margin:8px 0}
.lead{font-size:17px;color:var(--soft)}
.answer{font-size:17px;line-height:1.35;font-weight:600}
.verdict{margin:8px 0;font-size:15px;line-height:1.35}.verdict div{display:grid;grid-template-columns:112px minmax(0,1fr);column-gap:12px}
.verdict div{padding:2px 0}.verdict dt{color:var(--soft)}.verdict dd{margin:0}.verdict dt,.verdict dd{overflow-wrap:anywhere}
.first .proof{margin:12px 0 0}.first .proof .soft{font-size:13px}.first figure{margin:14px 0 0}.first p{margin:6px 0}
@media screen and (min-width:900px){.drawn{display:grid;grid-template-columns:minmax(0,6fr) minmax(0,5fr);column-gap:32px}
.drawn{align-items:start;align-content:start}}
@media screen and (max-width:600px){h1{font-size:24px!important}.lead{font-size:14px!important;margin:2px 0}.answer{font-size:15px}
.verdict{font-size:14px}.verdict div{grid-template-columns:84px minmax(0,1fr);column-gap:8px}.first .proof{padding:8px 12px}
main{padding-top:14px}}
.contents ul{display:flex;flex-wrap:wrap;gap:4px 18px;list-style:none;margin:26px 0 0;padding:12px 0 0;border-top:1px solid var(--rule)}
.contents{font-size:14px}
.tools{display:flex;gap:8px;align-items:center;justify-content:flex-end;margin:6px 0 -4px;min-height:28px}
.tools button,.tools input{font:13px/1.4 inherit;color:var(--soft);background:var(--page);border:1px solid var(--rule);border-radius:6px}
.tools button,.tools input{padding:2px 9px;min-height:26px}.tools input{color:var(--ink);width:150px}.tools button:hover{color:var(--ink)}
.sort{font:inherit;color:inherit;background:none;border:0;padding:0;margin:0;text-align:inherit;cursor:pointer}
.sort,main a{display:inline-block;min-height:24px;min-width:24px}summary{min-height:24px}
.sort::after{content:" \\2195";opacity:.45}[aria-sort=ascending] .sort::after{content:" \\2191";opacity:1}
[aria-sort=descending] .sort::after{content:" \\2193";opacity:1}
.tip{position:fixed;z-index:9;background:var(--ink);color:var(--page);font-size:13px;padding:3px 9px;border-radius:6px;max-width:300px}
.tip{pointer-events:none;overflow-wrap:anywhere}.at{stroke:var(--ink)!important;stroke-width:2!important}
.near{cursor:grab;touch-action:none}:focus-visible{outline:2px solid var(--k0);outline-offset:2px}
.soft,figcaption,caption{color:var(--soft)}
.badge{display:inline-block;padding:2px 10px;border-radius:12px;border:1.5px solid currentColor;font-weight:600;font-size:14px}
.good{color:var(--good)}.warn{color:var(--warn)}
.proof{border-left:4px solid var(--good);background:var(--panel);padding:10px 16px;margin:18px 0;overflow-wrap:anywhere}
.proof.open{border-color:var(--warn)}.proof.stated{border-color:var(--soft)}
.proof .answer{font-size:19px}.answer .badge{white-space:nowrap;vertical-align:2px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin:18px 0}
@media(min-width:860px){.of3{grid-template-columns:repeat(3,1fr)}.of4{grid-template-columns:repeat(4,1fr)}}
.tile{background:var(--panel);border-radius:8px;padding:10px 14px}
.tile b{display:block;font-size:21px;line-height:1.25;font-variant-numeric:tabular-nums}
.tile b.long{font-size:15px;font-weight:600}
.tile span{color:var(--soft);font-size:14px}
figure{margin:14px 0}
figcaption{font-size:14px;margin-top:4px}
svg{display:block;width:100%;height:auto;font-family:inherit;font-size:12px}
.for-narrow{display:none}@media screen and (max-width:600px){.for-wide{display:none}.for-narrow{display:block;max-width:480px}}
.table{overflow-x:auto;margin:12px 0}
table{border-collapse:collapse;width:100%;font-size:15px}
caption{text-align:left;font-size:14px;padding-bottom:4px}
th,td{text-align:left;padding:5px 14px 5px 0;border-bottom:1px solid var(--rule);vertical-align:top}
tbody th:nth-last-child(2){width:1%}.parts{max-width:520px}
th{font-weight:600}thead th{color:var(--soft);font-size:14px}
@media(min-width:640px){tbody th{white-space:nowrap}}
.n{font-variant-numeric:tabular-nums}td.n,th.n{text-align:right;white-space:nowrap}thead th.n{white-space:normal}
.swatch{display:inline-block;min-width:22px;padding:0 4px;border-radius:4px;color:var(--on);text-align:center}
.swatch{font-size:13px;line-height:20px}
.key{display:inline-block;margin-right:14px}
details{margin:12px 0}summary{cursor:pointer}
pre{background:var(--panel);padding:12px;overflow:auto;max-height:420px}
pre{font:13px/1.45 ui-monospace,Menlo,Consolas,monospace;white-space:pre-wrap}
pre{overflow-wrap:anywhere}
footer{margin-top:44px;padding-top:14px;border-top:1px solid var(--rule);color:var(--soft);font-size:14px;overflow-wrap:anywhere}
@media screen and (max-width:640px){.many th:first-child,.slides th:first-child{position:sticky;left:0;background:var(--page);z-index:1}
.wide tbody th:first-child,.many tbody th:first-child{min-width:104px}
caption span{display:block;position:sticky;left:0;max-width:calc(100vw - 40px)}}
@media screen and (max-width:640px){.many::before,.slides::before{content:"\\2194  scrolls sideways"}}
@media screen and (max-width:640px){.many::before,.slides::before{color:var(--soft);font-size:13px}}
@media screen and (max-width:640px){.many::before,.slides::before{display:block;position:sticky;left:0}}
@media print{body{font-size:13px}.table,pre{overflow:visible}tbody tr:first-child{break-before:avoid}
caption,thead{break-after:avoid;break-inside:avoid}.many table,.many thead th{font-size:9.5px}.many th,.many td{padding-right:5px}
table,figcaption,caption,thead th{font-size:12px}
.wide table,.wide thead th{font-size:10px}.wide th,.wide td{padding-right:6px}
main{max-width:none;padding:0}details:not(.drawn-out),.screen,.tools,.contents,.tip{display:none}.sort::after{content:none}
h2,h3,h4,.keys,h2+p{break-after:avoid}article{break-before:page}figure,.table,.tile,.proof,tr{break-inside:avoid}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
"""

_MARKS: Final = """
.t{fill:var(--ink)}.m{fill:var(--soft)}.on{fill:var(--on);font-weight:600}.b{font-weight:700}
.cut{stroke:var(--page);stroke-width:1}.fine{stroke-width:.5}
.track{fill:var(--rule)}
.grid{stroke:var(--rule);stroke-width:1;fill:none}
.mark{stroke:var(--ink);stroke-width:1.5;stroke-dasharray:5 3;fill:none}
.pointer{fill:none;stroke-width:1.2}.step{fill:none;stroke-width:2.2}.dashed{stroke-dasharray:7 4}
.arc{fill:none;stroke:var(--soft);stroke-width:1;stroke-opacity:.55}
.moved{stroke:var(--ink);stroke-width:1.6;stroke-opacity:.8}
.roof{fill:none;stroke:var(--ink);stroke-width:1.6}.quiet{stroke:var(--soft)}.ground{fill:var(--page)}
.hollow{fill:var(--page);stroke:var(--ink);stroke-width:1.2}
.none{fill:transparent}
.branch{fill:none;stroke:var(--soft);stroke-width:1}
"""
"""What pictures are drawn with."""


def style() -> str:
    """The style sheet."""
    dark = f"@media screen and (prefers-color-scheme:dark){{:root{{{_DARK}}}}}"
    return f":root{{color-scheme:light dark;{_LIGHT}}}{dark}{_RULES}{_MARKS}{_hues()}"


def alone(picture: str) -> str:
    """A picture as a file of its own: light, with its colours in it rather than in variables, which not every viewer knows."""
    colours = dict(pair.split(":") for pair in _LIGHT.split(";"))
    rules = f"svg{{background:var(--page);font:12px sans-serif}}{_MARKS}{_hues()}"
    sheet = re.sub(r"var\((--\w+)\)", lambda found: colours[found[1]], rules)
    head, rest = picture.split("</desc>", 1)
    opened = head.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return f"{opened}</desc>\n<style>{sheet}</style>{rest}\n"


def _hues() -> str:
    return "".join(
        f".k{index}{{fill:var(--k{index})}}.k{index}-line{{stroke:var(--k{index})}}.b{index}{{background:var(--k{index})}}"
        for index in range(8)
    )
