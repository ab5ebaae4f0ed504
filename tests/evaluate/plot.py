"""Line charts as SVG, small enough to be read in a diff."""

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 520, 260, 56, 40, 28, 12
COLOURS = ["#b45309", "#0f766e", "#4338ca", "#be123c"]


def nice(most):
    """A round number not below `most`."""
    scale = 1
    while scale * 10 < most:
        scale *= 10
    while scale > most > 0:
        scale /= 10
    return next(scale * step for step in (1, 2, 2.5, 5, 10) if scale * step >= most)


def chart(path, title, across, up, lines):
    """`lines` is a list of (name, [(x, y), …])."""
    points = [point for _, line in lines for point in line]
    x_most = nice(max(x for x, _ in points) or 1)
    y_most = nice(max(y for _, y in points) or 1)
    x_at = lambda x: LEFT + x / x_most * (WIDTH - LEFT - RIGHT)
    y_at = lambda y: HEIGHT - BOTTOM - y / y_most * (HEIGHT - BOTTOM - TOP)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>', f'<text x="{LEFT}" y="16" font-size="13">{title}</text>']
    for step in range(5):
        y = y_most * step / 4
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y_at(y):.1f}" y2="{y_at(y):.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 6}" y="{y_at(y) + 4:.1f}" text-anchor="end">{y:g}</text>')
        x = x_most * step / 4
        out.append(f'<text x="{x_at(x):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{x:g}</text>')
    out.append(f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{across}</text>')
    out.append(f'<text x="12" y="{HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 12 {HEIGHT / 2})">{up}</text>')
    for at, (name, line) in enumerate(lines):
        colour = COLOURS[at % len(COLOURS)]
        way = " ".join(f"{x_at(x):.1f},{y_at(y):.1f}" for x, y in line)
        out.append(f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out.append(f'<text x="{WIDTH - RIGHT}" y="{TOP + 12 + 14 * at}" text-anchor="end" fill="{colour}">{name}</text>')
    out.append("</svg>\n")
    path.write_text("\n".join(out))
