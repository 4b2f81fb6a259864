"""The router: hands the list of screens to Streamlit.  Draws nothing; every screen is complete alone.

`streamlit run app.py` finds `app` here, and opens the address once what the first screen needs is in memory
(`pages.components.serving`); each visitor's session then runs this file as a script.

The start-up hook and the menu stand in `pages.components.page`, where every screen calls them: until somebody has
opened the root, Streamlit serves a deep link by running the screen's file without this one.
"""

import streamlit as st

if __name__ == "__main__":
    from pages.components.screens import SCREENS

    st.navigation(
        [
            st.Page(one.file, title=one.title, icon=one.icon, default=place == 0)
            for place, one in enumerate(SCREENS.values())
        ],
        position="hidden",
    ).run()
else:
    from pages.components.serving import getting_ready

    app = st.App(__file__, lifespan=getting_ready)
