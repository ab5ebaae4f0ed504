"""Line charts as SVG, small enough to be read in a diff."""

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 520, 260, 56, 40, 28, 12
FONT = 'font-family="sans-serif" font-size="11"'
COLOURS = ["#b45309", "#0f766e", "#4338ca", "#be123c"]


def nice(most):
    """A round number not below `most`."""
    scale = 1
    while scale * 10 < most:
        scale *= 10
    while scale > most > 0:
        scale /= 10
    return next(scale * step for step in (1, 2, 2.5, 5, 10) if scale * step >= most)


def text(x, y, words, **attributes):
    """An SVG text; underscores in names of attributes stand for dashes."""
    more = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f'<text x="{x}" y="{y}"{more}>{words}</text>'


def chart(path, title, across, up, lines):
    """`lines` is a list of (name, [(x, y), …])."""
    points = [point for _, line in lines for point in line]
    x_most = nice(max(x for x, _ in points) or 1)
    y_most = nice(max(y for _, y in points) or 1)

    def x_at(x):
        return f"{LEFT + x / x_most * (WIDTH - LEFT - RIGHT):.1f}"

    def y_at(y, below=0):
        return f"{HEIGHT - BOTTOM - y / y_most * (HEIGHT - BOTTOM - TOP) + below:.1f}"

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {FONT}>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        text(LEFT, 16, title, font_size=13),
    ]
    for step in range(5):
        x, y = x_most * step / 4, y_most * step / 4
        ends = f'x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y_at(y)}" y2="{y_at(y)}"'
        out.append(f'<line {ends} stroke="#ddd"/>')
        out.append(text(LEFT - 6, y_at(y, 4), f"{y:g}", text_anchor="end"))
        out.append(text(x_at(x), HEIGHT - BOTTOM + 16, f"{x:g}", text_anchor="middle"))
    middle = HEIGHT / 2
    out.append(text((LEFT + WIDTH) / 2, HEIGHT - 6, across, text_anchor="middle"))
    turned = f"rotate(-90 12 {middle})"
    out.append(text(12, middle, up, text_anchor="middle", transform=turned))
    for at, (name, line) in enumerate(lines):
        colour = COLOURS[at % len(COLOURS)]
        way = " ".join(f"{x_at(x)},{y_at(y)}" for x, y in line)
        out.append(f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="2"/>')
        place = (WIDTH - RIGHT, TOP + 12 + 14 * at)
        out.append(text(*place, name, text_anchor="end", fill=colour))
    out.append("</svg>\n")
    path.write_text("\n".join(out))
