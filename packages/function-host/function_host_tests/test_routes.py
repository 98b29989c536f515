"""Routes are matched as ASP.NET matches the templates of functions."""

import pytest

from function_host import AppError
from function_host.routes import Route, RouteTable


def found(template: str, path: str) -> dict[str, str] | None:
    match = RouteTable([(Route.parse(template), frozenset(), "target")]).find("GET", path)
    return None if match is None else match[1]


@pytest.mark.parametrize(
    ("template", "path", "parameters"),
    [
        ("api/games", "/api/games", {}),
        ("api/games", "/API/Games/", {}),
        ("api/games", "/api/games/1", None),
        ("api/games/{id}", "/api/games/a%2Fb", {"id": "a/b"}),
        ("api/games/{id}", "/api/games", None),
        ("api/games/{id}/shots/{shot}", "/api/games/1/shots/2", {"id": "1", "shot": "2"}),
        ("api/games/{id?}", "/api/games", {}),
        ("api/games/{id:int}", "/api/games/-12", {"id": "-12"}),
        ("api/games/{id:int}", "/api/games/x", None),
        (
            "api/games/{id:guid}",
            "/api/games/6f9619ff-8b86-d011-b42d-00c04fc964ff",
            {"id": "6f9619ff-8b86-d011-b42d-00c04fc964ff"},
        ),
        ("api/files/{*path}", "/api/files/a/b", {"path": "a/b"}),
        ("api/files/{*path}", "/api/files", {"path": ""}),
    ],
)
def test_a_path_gives_its_parameters(template: str, path: str, parameters: dict[str, str] | None) -> None:
    assert found(template, path) == parameters


def test_literals_win_over_constrained_parameters_over_others_over_the_rest() -> None:
    templates = ["games/{*rest}", "games/{id}", "games/{id:int}", "games/new"]
    table = RouteTable([(Route.parse(template), frozenset(), template) for template in templates])

    served = [match[0] for path in ("new", "7", "x", "x/y") if (match := table.find("GET", f"/games/{path}"))]

    assert served == ["games/new", "games/{id:int}", "games/{id}", "games/{*rest}"]


def test_methods_choose_between_equal_routes_and_no_methods_means_all() -> None:
    table = RouteTable(
        [
            (Route.parse("games"), frozenset({"GET"}), "read"),
            (Route.parse("games"), frozenset({"POST", "PUT"}), "write"),
            (Route.parse("any"), frozenset(), "any"),
        ]
    )

    assert table.find("GET", "/games") == ("read", {})
    assert table.find("post", "/games") == ("write", {})
    assert table.find("DELETE", "/games") is None
    assert table.find("DELETE", "/any") == ("any", {})


@pytest.mark.parametrize("template", ["games/{id", "games/{id}.json", "games/{id:range(1,5)}", "games/{id=7}"])
def test_templates_beyond_the_supported_part_are_refused(template: str) -> None:
    with pytest.raises(AppError, match="Route"):
        Route.parse(template)
