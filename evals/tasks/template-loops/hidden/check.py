from tpl import TemplateError, render

assert render("<b>{{ user.name }}</b>", {"user": {"name": "<Ann>"}}) == "<b>&lt;Ann&gt;</b>"
assert render("{% for x in xs %}[{{ x }}]{% end %}", {"xs": [1, "<"]}) == "[1][&lt;]"
assert render("{% for x in xs %}[{{ x }}]{% end %}.", {"xs": []}) == "."
nested = "{% for row in rows %}{% for x in row.cells %}{{ x }}{{ row.end }}{% end %}|{% end %}{{ x }}{{ row }}"
rows = [{"cells": (1, 2), "end": ";"}, {"cells": [], "end": ""}]
assert render(nested, {"rows": rows, "x": "out"}) == "1;2;||out"
assert render("{% for x in xs %}{% for x in x.ys %}{{ x }}{% end %}{{ x.n }}{% end %}", {"xs": [{"ys": [1], "n": 2}]}) == "12"
# What a value says is no template.
assert render("{% for x in xs %}{{ x }}{% end %}", {"xs": ["{{ secret }}", "{% end %}"], "secret": 1}) == "{{ secret }}{% end %}"
values = {"xs": [1]}
render("{% for x in xs %}{% end %}", values)
assert values == {"xs": [1]}
for template, line in [("a\n\n{% for x in xs %}", 3), ("a\n{% end %}", 2), ("{% if x %}", 1), ("\n{% for x %}{% end %}", 2), ("{% for x in n %}{% end %}", 1), ("{% for x in s %}{% end %}", 1)]:
    try:
        render(template, {"xs": [1], "n": 5, "s": "text"})
    except TemplateError as error:
        assert f"line {line}" in str(error), (template, str(error))
    else:
        raise AssertionError(template)
print("PASS")
